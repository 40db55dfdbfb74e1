// SPDX-License-Identifier: Apache-2.0
// Drives `cordon mcp` through an official SDK client: bridge.mjs v1|v2|v2-legacy COMMAND [ARG]...; or `cordon serve`, with a URL
// instead of the command and BRIDGE_TOKEN.
// Takes one JSON command per line and answers with one; what the server sends unasked comes as {"notification": ...}.
// The SDK judges every message by its own schemas, and structured content by the tool's output schema.
import readline from 'node:readline';

const [kind, command, ...args] = process.argv.slice(2);
const print = (value) => process.stdout.write(JSON.stringify(value) + '\n');
// What the person says when the server asks: true, false, or null for a client that can't ask.
let approve = process.env.BRIDGE_APPROVE === undefined ? null : process.env.BRIDGE_APPROVE === 'yes';
const capabilities = approve === null ? {} : { elicitation: { form: {} } };
const info = { name: `cordon-test-${kind}`, version: '1.0.0' };
const answer = (request) => {
    print({ asked: request.params.message });
    return approve ? { action: 'accept', content: { approve: true } } : { action: 'decline' };
};
// Every message of the wire is printed too, for the judge; also of transports that the SDK makes for itself, to probe.
function tap(Transport) {
    const { start, send } = Transport.prototype;
    Transport.prototype.send = function (message, ...rest) {
        print({ wire: 'client', message });
        return send.call(this, message, ...rest);
    };
    Transport.prototype.start = function () {
        const seen = new WeakSet(); // the SDK may put a handler around the one that was there
        let take;
        const wrapped = (handler) => handler && ((message, extra) => {
            if (!seen.has(message)) print({ wire: 'server', message });
            seen.add(message);
            handler(message, extra);
        });
        take = wrapped(this.onmessage);
        Object.defineProperty(this, 'onmessage', { configurable: true, get: () => take, set: (handler) => (take = wrapped(handler)) });
        return start.call(this);
    };
}
const http = command.startsWith('http://');
const token = { requestInit: { headers: { Authorization: `Bearer ${process.env.BRIDGE_TOKEN}` } } };
const notified = (notification) => print({ notification });

async function connectV1() {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StdioClientTransport } = await import('@modelcontextprotocol/sdk/client/stdio.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    tap(http ? StreamableHTTPClientTransport : StdioClientTransport);
    const types = await import('@modelcontextprotocol/sdk/types.js');
    const client = new Client(info, { capabilities });
    if (approve !== null) client.setRequestHandler(types.ElicitRequestSchema, async (request) => answer(request));
    client.fallbackNotificationHandler = async (notification) => notified(notification);
    await client.connect(http ? new StreamableHTTPClientTransport(new URL(command), token) : new StdioClientTransport({ command, args, env: process.env }));
    return client;
}

async function connectV2() {
    const { Client } = await import('@modelcontextprotocol/client');
    const { StdioClientTransport } = await import('@modelcontextprotocol/client/stdio');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
    tap(http ? StreamableHTTPClientTransport : StdioClientTransport);
    const mode = kind === 'v2' ? { pin: '2026-07-28' } : 'legacy';
    const client = new Client(info, { capabilities, versionNegotiation: { mode } });
    if (approve !== null) client.setRequestHandler('elicitation/create', async (request) => answer(request));
    client.fallbackNotificationHandler = async (notification) => notified(notification);
    await client.connect(http ? new StreamableHTTPClientTransport(new URL(command), token) : new StdioClientTransport({ command, args, env: process.env }));
    return client;
}

const client = kind === 'v1' ? await connectV1() : await connectV2();
const listens = [];
const aborts = new Map();
client.onerror = (error) => print({ trouble: String(error) });

function call({ name, args: given, progress, key, timeout }) {
    const controller = new AbortController();
    if (key !== undefined) aborts.set(key, controller);
    const options = { signal: controller.signal, timeout: timeout ?? 60000 };
    if (progress) options.onprogress = (value) => print({ progress: value });
    const params = { name, arguments: given };
    return kind === 'v1' ? client.callTool(params, undefined, options) : client.callTool(params, options);
}

const operations = {
    server: async () => ({
        info: client.getServerVersion(),
        capabilities: client.getServerCapabilities(),
        instructions: client.getInstructions(),
    }),
    tool: call,
    cancel: async ({ key }) => aborts.get(key).abort('enough'),
    tools: () => client.listTools(),
    resources: ({ cursor }) => client.listResources(cursor ? { cursor } : {}),
    templates: () => client.listResourceTemplates(),
    read: ({ uri }) => client.readResource({ uri }),
    prompts: () => client.listPrompts(),
    prompt: ({ name, args: given }) => client.getPrompt({ name, arguments: given }),
    complete: (params) => client.complete(params),
    subscribe: async ({ uris, lists }) => {
        if (kind !== 'v2') {
            for (const uri of uris) await client.subscribeResource({ uri });
            return { uris };
        }
        const listen = await client.listen({ resourceSubscriptions: uris, resourcesListChanged: lists, toolsListChanged: true });
        listens.push(listen);
        return { honored: listen.honoredFilter };
    },
    unsubscribe: async ({ uris }) => {
        if (kind !== 'v2') for (const uri of uris) await client.unsubscribeResource({ uri });
        for (const listen of listens.splice(0)) await listen.close();
        return {};
    },
};

print({ ready: kind });
for await (const line of readline.createInterface({ input: process.stdin })) {
    const { id, op, ...params } = JSON.parse(line);
    // Not awaited: a later command may cancel this one.
    (async () => operations[op](params))().then(
        (value) => print({ id, value: value ?? null }),
        (error) => print({ id, error: { code: error.code ?? null, message: String(error.message), data: error.data ?? null } })
    );
}
await client.close();
process.exit(0);

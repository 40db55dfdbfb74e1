// SPDX-License-Identifier: Apache-2.0
// Judges what client and server write to each other by the schemas of the official SDKs, each message in its own revision:
// legacy ones by v1 of the SDK and by v2's frozen schemas of 2025-11-25, modern ones by v2's of 2026-07-28.
//
// Takes {"c": connection, "from": "client"|"server", "text": line, "malformed"?: true} per line on stdin, in the order of the
// wire. {"c": connection, "end": true} is answered by {"c", "seen": {client, server}, "bad": [...]}. A client's request that the
// server refused need not be a valid one, and neither need one that is marked: tests send those on purpose.
import fs from 'node:fs';
import readline from 'node:readline';
import * as core from '@modelcontextprotocol/core';
import * as v1 from '@modelcontextprotocol/sdk/types.js';

// The schemas by revision are not among the package's public names; the lock file pins the file that holds them.
const dist = new URL('node_modules/@modelcontextprotocol/client/dist/', import.meta.url);
const bundle = fs.readdirSync(dist).find((name) => /^src-.*\.mjs$/.test(name));
const codecForVersion = Object.values(await import(new URL(bundle, dist))).find((value) => value.name === 'codecForVersion');
const codecs = { legacy: codecForVersion('2025-11-25'), modern: codecForVersion('2026-07-28') };
if (codecs.legacy.era !== '2025-11-25' || codecs.modern.era !== '2026-07-28') throw new Error('no codecs');

const META = 'io.modelcontextprotocol/';
const schemasV1 = {
    initialize: ['InitializeRequest', 'InitializeResult'],
    ping: ['PingRequest', 'EmptyResult'],
    'tools/list': ['ListToolsRequest', 'ListToolsResult'],
    'tools/call': ['CallToolRequest', 'CallToolResult'],
    'resources/list': ['ListResourcesRequest', 'ListResourcesResult'],
    'resources/templates/list': ['ListResourceTemplatesRequest', 'ListResourceTemplatesResult'],
    'resources/read': ['ReadResourceRequest', 'ReadResourceResult'],
    'resources/subscribe': ['SubscribeRequest', 'EmptyResult'],
    'resources/unsubscribe': ['UnsubscribeRequest', 'EmptyResult'],
    'prompts/list': ['ListPromptsRequest', 'ListPromptsResult'],
    'prompts/get': ['GetPromptRequest', 'GetPromptResult'],
    'completion/complete': ['CompleteRequest', 'CompleteResult'],
    'elicitation/create': ['ElicitRequest', 'ElicitResult'],
    'notifications/initialized': ['InitializedNotification'],
    'notifications/progress': ['ProgressNotification'],
    'notifications/cancelled': ['CancelledNotification'],
    'notifications/resources/updated': ['ResourceUpdatedNotification'],
    'notifications/resources/list_changed': ['ResourceListChangedNotification'],
    'notifications/tools/list_changed': ['ToolListChangedNotification'],
    'notifications/prompts/list_changed': ['PromptListChangedNotification'],
};
const cacheable = ['server/discover', 'tools/list', 'resources/list', 'resources/templates/list', 'resources/read', 'prompts/list'];

// The first place where a value has a field that the schema's reading of it lacks.
function unknownField(raw, read, at = '') {
    if (raw === null || typeof raw !== 'object' || read === null || typeof read !== 'object') return null;
    for (const key of Object.keys(raw)) {
        if (!(key in read)) return `${at}.${key}`;
        const below = unknownField(raw[key], read[key], `${at}.${key}`);
        if (below) return below;
    }
    return null;
}

function byCodec(outcome, raw, what) {
    if (!outcome.ok) return [`${what}: ${outcome.reason} ${outcome.message ?? ''}`];
    const field = unknownField(raw, outcome.value);
    return field ? [`${what}: the schema knows no ${field}`] : [];
}

function byV1(name, value, what) {
    const schema = v1[`${name}Schema`];
    if (!schema) return [`${what}: v1 has no ${name}`];
    const parsed = schema.safeParse(value);
    return parsed.success ? [] : [`${what} (v1): ${parsed.error}`];
}

function judgeRequest(era, { method, params }) {
    const raw = params === undefined ? { method } : { method, params };
    // The SDK takes answers of the person off a request before it looks at the rest.
    const { inputResponses, requestState, ...rest } = params ?? {};
    const bad = byCodec(codecs[era].validateRequest(method, raw), era === 'legacy' ? {} : { method, params: rest }, `${era} request ${method}`);
    if (era === 'legacy') return [...bad, ...byV1(schemasV1[method]?.[0], raw, `request ${method}`)];
    const envelope = codecs.modern.checkInboundEnvelope({ envelope: params?._meta });
    return envelope ? [...bad, envelope] : bad;
}

function judgeNotification(era, { method, params }) {
    const raw = params === undefined ? { method } : { method, params };
    const bad = byCodec(codecs[era].validateNotification(method, raw), raw, `${era} ${method}`);
    return era === 'legacy' ? [...bad, ...byV1(schemasV1[method]?.[0], raw, method)] : bad;
}

function judgeInputRequired(result) {
    const bad = 'ttlMs' in result || 'cacheScope' in result ? ['caching hints of an input_required result'] : [];
    for (const request of Object.values(result.inputRequests ?? {}))
        bad.push(...byCodec(codecs.modern.validateInputRequest(request.method, request), request, 'input request'));
    return bad;
}

function judgeModernResult(method, result) {
    const bad = [];
    const decoded = codecs.modern.decodeResult(method, result);
    if (result._meta?.[`${META}serverInfo`]?.name !== 'cordon') bad.push(`${method}: no serverInfo`);
    if (decoded.kind === 'invalid') return [...bad, String(decoded.error)];
    if (decoded.kind === 'input_required') return [...bad, ...judgeInputRequired(result)];
    if (!cacheable.includes(method) && ('ttlMs' in result || 'cacheScope' in result)) bad.push(`caching hints of ${method}`);
    return [...bad, ...byCodec(codecs.modern.validateResult(method, decoded.result), decoded.result, `modern result of ${method}`)];
}

function judgeLegacyResult(method, result) {
    const bad = ['resultType', 'ttlMs', 'cacheScope'].filter((key) => key in result).map((key) => `${key} in the legacy era`);
    bad.push(...byCodec(codecs.legacy.validateResult(method, result), result, `legacy result of ${method}`));
    return [...bad, ...byV1(schemasV1[method]?.[1], result, `result of ${method}`)];
}

// Many answers are alike, and the large ones most of all.
const known = new Map();
function judgeResult(era, method, result) {
    const key = `${era} ${method} ${JSON.stringify(result)}`;
    let bad = known.get(key);
    if (bad === undefined) {
        bad = era === 'modern' ? judgeModernResult(method, result) : judgeLegacyResult(method, result);
        if (known.size > 2000) known.clear();
        known.set(key, bad);
    }
    return bad;
}

function judgeError(era, error) {
    const bad = [];
    if (era === 'modern' && [-32002, -32042].includes(error.code)) bad.push(`${error.code} is a code of the legacy era`);
    if (error.code === -32022 && !(Array.isArray(error.data?.supported) && 'requested' in error.data)) bad.push('-32022 without data');
    if (error.code === -32021 && typeof error.data?.requiredCapabilities !== 'object') bad.push('-32021 without requiredCapabilities');
    if (error.code <= -32000 && error.code >= -32019 && error.code !== -32002) bad.push(`${error.code} must not be used`);
    return bad;
}

class Connection {
    bad = [];
    seen = { client: 0, server: 0 };
    pending = { client: new Map(), server: new Map() }; // what each side asked: id -> [{method, era, problems}]
    tokens = new Map(); // progress: token -> {era, last}
    listens = new Set();
    stray = new Set(); // ids of malformed messages, which may be answered with an error
    huge = new Set();

    report(problems, text) {
        for (const problem of problems) this.bad.push(`${problem}\n    ${text.slice(0, 600)}`);
    }

    eraOfNotification({ method, params }) {
        if (method === 'notifications/subscriptions/acknowledged' || params?._meta?.[`${META}subscriptionId`] !== undefined) return 'modern';
        if (method === 'notifications/progress') return this.tokens.get(JSON.stringify(params?.progressToken))?.era ?? 'legacy';
        const asked = this.pending.client.get(JSON.stringify(params?.requestId));
        return method === 'notifications/cancelled' && asked?.length ? asked[0].era : 'legacy';
    }

    request(from, message, text, malformed) {
        const { id, method, params } = message;
        const modern = from === 'client' && (params?._meta?.[`${META}protocolVersion`] !== undefined || method === 'server/discover');
        const era = modern ? 'modern' : 'legacy';
        const problems = malformed ? [] : judgeRequest(era, message);
        const token = params?._meta?.progressToken;
        if (from === 'server') this.report(problems, text);
        const key = JSON.stringify(id);
        const asked = this.pending[from].get(key) ?? [];
        // Ids of malformed ones are used again and again: whatever was asked with one may be what is answered.
        if (malformed && asked.some((other) => other.method === method && other.era === era)) return;
        asked.push({ method, era, text, problems: from === 'server' ? [] : problems, stays: malformed });
        this.pending[from].set(key, asked);
        if (token !== undefined) this.tokens.set(JSON.stringify(token), { era, last: -Infinity });
        if (method === 'subscriptions/listen') this.listens.add(key);
    }

    notification(from, message, text) {
        const { method, params } = message;
        const problems = judgeNotification(this.eraOfNotification(message), message);
        const listen = params?._meta?.[`${META}subscriptionId`];
        if (listen !== undefined && !this.listens.has(JSON.stringify(listen))) problems.push('a subscriptionId that nobody asked with');
        if (from === 'server' && method === 'notifications/progress') {
            const progress = this.tokens.get(JSON.stringify(params?.progressToken));
            if (!progress) problems.push('progress that nobody asked for');
            else if (params.progress <= progress.last) problems.push('progress that does not grow');
            else progress.last = params.progress;
        }
        this.report(problems, text);
    }

    // Tests may use an id twice while both are pending; then the answer is the one that fits.
    response(from, message, text) {
        const asker = from === 'server' ? 'client' : 'server';
        const asked = this.pending[asker].get(JSON.stringify(message.id)) ?? [];
        const remove = (at) => (asked[at]?.stays ? asked[at] : asked.splice(at, 1)[0]);
        if (message.error) {
            const request = remove(0);
            if (message.id !== undefined && !request && !this.stray.has(JSON.stringify(message.id))) this.report(['an answer to nothing'], text);
            const era = asked.length > 1 || !request ? 'legacy' : request.era;
            if (from === 'server') this.report(judgeError(era, message.error), text);
            return;
        }
        const verdicts = asked.map((request) => judgeResult(request.era, request.method, message.result));
        const fits = Math.max(verdicts.findIndex((bad) => bad.length === 0), 0);
        if (!asked.length) return this.report(['an answer to nothing'], text);
        this.report(verdicts[fits], text);
        const request = remove(fits);
        this.report(request.problems, request.text);
    }

    take({ from, text, malformed }) {
        let message;
        this.seen[from]++;
        try {
            message = JSON.parse(text);
        } catch {
            if (!malformed) this.report([`${from}: not JSON`], text);
            return;
        }
        const isObject = message !== null && typeof message === 'object' && !Array.isArray(message);
        // The schemas allow no integer that a double can't hold; one that a test sent comes back as it was.
        if (Number.isInteger(message?.id) && !Number.isSafeInteger(message.id)) {
            if (malformed) this.huge.add(message.id);
            if (this.huge.has(message.id)) message.id = String(message.id);
        }
        if (!malformed)
            for (const [name, sdk] of [['v1', v1], ['v2', core]])
                if (!sdk.JSONRPCMessageSchema.safeParse(message).success) this.report([`${name}: no JSON-RPC message`], text);
        if (!isObject) return;
        if (malformed) this.stray.add(JSON.stringify(message.id));
        const isResponse = !('method' in message) && ('result' in message || 'error' in message);
        if (from === 'client' && isResponse && !malformed) this.response(from, message, text);
        else if (from === 'server' && isResponse) this.response(from, message, text);
        else if (typeof message.method !== 'string') return;
        else if ('id' in message) this.request(from, message, text, malformed);
        else if (!malformed) this.notification(from, message, text);
    }

    end() {
        for (const asked of this.pending.client.values()) for (const { problems, text } of asked) this.report(problems, text);
        return { seen: this.seen, bad: this.bad };
    }
}

const connections = new Map();
for await (const line of readline.createInterface({ input: process.stdin })) {
    const entry = JSON.parse(line);
    if (!connections.has(entry.c)) connections.set(entry.c, new Connection());
    const connection = connections.get(entry.c);
    if (!entry.end) {
        connection.take(entry);
        continue;
    }
    connections.delete(entry.c);
    console.log(JSON.stringify({ c: entry.c, ...connection.end() }));
}

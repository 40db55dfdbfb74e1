// SPDX-License-Identifier: Apache-2.0
// A server of the official TypeScript SDK with one trivial tool: serve_peer.mjs v1|v2. Prints its port.
// Each is set up as its documentation says and answers with plain JSON, which is its fastest way.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';

const about = { name: 'peer', version: '1' };

function withTool(server) {
    server.registerTool('trivial', { description: 'Says ok' }, async () => ({ content: [{ type: 'text', text: 'ok' }] }));
    return server;
}

// One transport for each session, found by the header.
async function v1() {
    const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js');
    const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
    const sessions = new Map();
    return async (request, response) => {
        let transport = sessions.get(request.headers['mcp-session-id']);
        if (!transport) {
            transport = new StreamableHTTPServerTransport({
                sessionIdGenerator: randomUUID,
                enableJsonResponse: true,
                onsessioninitialized: id => { sessions.set(id, transport); }
            });
            await withTool(new McpServer(about)).connect(transport);
        }
        await transport.handleRequest(request, response);
    };
}

async function v2() {
    const { McpServer, createMcpHandler } = await import('@modelcontextprotocol/server');
    const { toNodeHandler } = await import('@modelcontextprotocol/node');
    return toNodeHandler(createMcpHandler(() => withTool(new McpServer(about)), { responseMode: 'json' }));
}

const serve = await { v1, v2 }[process.argv[2]]();
const server = createServer(serve);
server.listen(0, '127.0.0.1', () => console.log(server.address().port));

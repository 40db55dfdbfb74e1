// SPDX-License-Identifier: Apache-2.0
// Validates messages that a server wrote against the schemas of both official SDKs: one {"method", "modern", "message"} per
// line on stdin, where method is that of the request a response answers. Prints what is wrong; exit 1 when anything is.
import readline from 'node:readline';
import * as core from '@modelcontextprotocol/core';
import * as v1 from '@modelcontextprotocol/sdk/types.js';

const results = {
    'server/discover': 'DiscoverResult',
    initialize: 'InitializeResult',
    ping: 'EmptyResult',
    'tools/list': 'ListToolsResult',
    'tools/call': 'CallToolResult',
    'resources/list': 'ListResourcesResult',
    'resources/templates/list': 'ListResourceTemplatesResult',
    'resources/read': 'ReadResourceResult',
    'resources/subscribe': 'EmptyResult',
    'resources/unsubscribe': 'EmptyResult',
    'prompts/list': 'ListPromptsResult',
    'prompts/get': 'GetPromptResult',
    'completion/complete': 'CompleteResult',
};
const notifications = {
    'notifications/progress': 'ProgressNotification',
    'notifications/cancelled': 'CancelledNotification',
    'notifications/resources/updated': 'ResourceUpdatedNotification',
    'notifications/resources/list_changed': 'ResourceListChangedNotification',
    'notifications/subscriptions/acknowledged': 'SubscriptionsAcknowledgedNotification',
};
const cacheable = ['server/discover', 'tools/list', 'resources/list', 'resources/templates/list', 'resources/read', 'prompts/list'];
let bad = 0;
let seen = 0;

function check(schema, value, what) {
    const parsed = schema.safeParse(value);
    if (parsed.success) return;
    bad++;
    console.log(`${what}: ${JSON.stringify(value).slice(0, 400)}\n${parsed.error}`);
}

function expect(condition, value, what) {
    if (condition) return;
    bad++;
    console.log(`${what}: ${JSON.stringify(value).slice(0, 400)}`);
}

for await (const line of readline.createInterface({ input: process.stdin })) {
    const { method, modern, message } = JSON.parse(line);
    seen++;
    for (const [sdk, name] of [[v1, 'v1'], [core, 'v2']]) {
        check(sdk.JSONRPCMessageSchema, message, `${name} message`);
        const notification = sdk[`${notifications[message.method]}Schema`];
        if (message.method && !message.id && notification) check(notification, message, `${name} ${message.method}`);
        if (message.method === 'elicitation/create') check(sdk.ElicitRequestSchema, message, `${name} ${message.method}`);
        const result = sdk[`${results[method]}Schema`];
        if (message.result && message.result.resultType !== 'input_required' && result) check(result, message.result, `${name} ${method}`);
    }
    if (message.method) expect(message.method in notifications || message.method === 'elicitation/create', message, 'unknown method');
    if (message.result && modern) {
        const { result } = message;
        expect(['complete', 'input_required'].includes(result.resultType), result, 'no resultType');
        expect(result._meta?.['io.modelcontextprotocol/serverInfo']?.name === 'cordon', result, 'no serverInfo');
        const hints = Number.isInteger(result.ttlMs) && result.ttlMs >= 0 && ['public', 'private'].includes(result.cacheScope);
        const wanted = cacheable.includes(method) && result.resultType === 'complete';
        expect(wanted ? hints : !('ttlMs' in result), result, `caching hints of ${method}`);
    }
    if (message.result && !modern) expect(!('resultType' in message.result), message.result, 'resultType in the legacy era');
    if (message.error && modern) expect(![-32002, -32042].includes(message.error.code), message.error, 'a code of the legacy era');
}
console.log(`${seen} messages, ${bad} bad`);
process.exit(bad ? 1 : 0);

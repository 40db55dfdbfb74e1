// SPDX-License-Identifier: Apache-2.0
// Drives Chromium for the tests of the page: one JSON command per line, one JSON answer each. A command names a tab and what to do
// with it; `find` is a chain of Playwright's ways to find an element, as in [["getByRole", "button", {"name": "Stop"}]].
import { createRequire } from 'node:module';
import fs from 'node:fs';
import readline from 'node:readline';
import { chromium } from 'playwright-core';

const axe = fs.readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
        '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage'],
});
const tabs = new Map();
const print = (value) => process.stdout.write(JSON.stringify(value) + '\n');

// What a person would find in the console, or what the page asked of others.
function listen(tab) {
    tab.page.on('console', (message) => message.type() === 'error' && tab.faults.push(message.text()));
    tab.page.on('pageerror', (error) => tab.faults.push(String(error)));
    tab.page.on('dialog', (dialog) => { tab.faults.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
    tab.page.on('request', (request) => tab.asked.push(request.url()));
    tab.page.on('download', (download) => tab.downloads.push(download));
}

const actions = {
    async open({ tab, options }) {
        const context = await browser.newContext(options);
        context.setDefaultTimeout(20000);
        tabs.set(tab, { context, page: await context.newPage(), faults: [], asked: [], downloads: [] });
        listen(tabs.get(tab));
    },
    async close({ tab }) {
        const { context, faults, asked } = tabs.get(tab);
        tabs.delete(tab);
        await context.close();
        return { faults, asked };
    },
    async page({ tab, call, args = [] }) {
        const result = await tabs.get(tab).page[call](...args);
        return ['string', 'boolean', 'number'].includes(typeof result) ? result : null;
    },
    async keyboard({ tab, call, args = [] }) {
        await tabs.get(tab).page.keyboard[call](...args);
    },
    async element({ tab, find, call, args = [] }) {
        let at = tabs.get(tab).page;
        for (const [how, ...rest] of find) at = at[how](...rest);
        if (call === 'evaluate') args[0] = new Function(`return ${args[0]}`)(); // a function can't come as JSON
        return (await at[call](...args)) ?? null;
    },
    async evaluate({ tab, script }) {
        return (await tabs.get(tab).page.evaluate(script)) ?? null;
    },
    async downloaded({ tab }) {
        const { page, downloads } = tabs.get(tab);
        const download = downloads.shift() ?? await page.waitForEvent('download').then(() => downloads.shift());
        return { name: download.suggestedFilename(), text: fs.readFileSync(await download.path(), 'utf8') };
    },
    // Rules of the accessibility guidelines that the page breaks. In an isolated world, because the page lets no foreign script run.
    async axe({ tab }) {
        const session = await tabs.get(tab).context.newCDPSession(tabs.get(tab).page);
        const { frameTree } = await session.send('Page.getFrameTree');
        const { executionContextId } = await session.send('Page.createIsolatedWorld', { frameId: frameTree.frame.id });
        const run = async (expression) => {
            const done = await session.send('Runtime.evaluate', { expression, contextId: executionContextId, awaitPromise: true, returnByValue: true });
            if (done.exceptionDetails) throw new Error(done.exceptionDetails.text);
            return done.result.value;
        };
        await run(axe + '; 0');
        const found = await run('axe.run(document).then((r) => r.violations.map((v) => ({ id: v.id, impact: v.impact, help: v.help, nodes: v.nodes.map((n) => n.html.slice(0, 200)) })))');
        await session.detach();
        return found;
    },
};

for await (const line of readline.createInterface({ input: process.stdin })) {
    const command = JSON.parse(line);
    try {
        print({ result: (await actions[command.do](command)) ?? null });
    } catch (error) {
        print({ error: String(error.message).slice(0, 4000) });
    }
}
await browser.close();

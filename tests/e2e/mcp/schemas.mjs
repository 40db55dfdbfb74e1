// SPDX-License-Identifier: Apache-2.0
// Takes {"schema", "values": [...]} per line; answers {"schema": problems or null, "values": [problems or null, ...]}: whether the
// schema is a valid one of JSON Schema 2020-12, and whether the values fit it.
import readline from 'node:readline';
import Ajv from 'ajv/dist/2020.js';

for await (const line of readline.createInterface({ input: process.stdin })) {
    const { schema, values } = JSON.parse(line);
    const ajv = new Ajv.default({ allErrors: true, strictSchema: true, strictTypes: false, strictRequired: false });
    if (!ajv.validateSchema(schema)) {
        console.log(JSON.stringify({ schema: ajv.errorsText(), values: [] }));
        continue;
    }
    try {
        const validate = ajv.compile(schema);
        console.log(JSON.stringify({ schema: null, values: values.map((value) => (validate(value) ? null : ajv.errorsText(validate.errors))) }));
    } catch (error) {
        console.log(JSON.stringify({ schema: String(error), values: [] }));
    }
}

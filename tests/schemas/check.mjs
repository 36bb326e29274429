// SPDX-License-Identifier: Apache-2.0
// check.mjs KIND FILE... - is each FILE what the published definition of sarif, otlp or speedscope says, or
// our own schema of the document (longpole)? Exit status 1: no, and why.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isDeepStrictEqual } from 'node:util';

const require = createRequire(import.meta.url);
const [kind, ...files] = process.argv.slice(2);
const json = (file) => JSON.parse(readFileSync(file, 'utf8'));

function bySchema(schema, draft04) {
	const Ajv = require('ajv');
	const ajv = new Ajv(draft04 ? { schemaId: 'id', meta: false, allErrors: true } : { allErrors: true });
	if (draft04) ajv.addMetaSchema(require('ajv/lib/refs/json-schema-draft-04.json'));
	const validate = ajv.compile(schema);
	return (document) => (validate(document) ? [] : validate.errors.slice(0, 5).map((e) => `${e.dataPath} ${e.message}`));
}

// OTLP's JSON is protobuf's but for ids, which are hexadecimal: their characters are base64's, too, and so come back unchanged.
// What the definition does not know, or has as another type, does not come back.
function byProto() {
	const root = require('@opentelemetry/otlp-transformer/build/src/generated/root.js');
	const type = root.opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest;
	return (document) => {
		const wrong = type.verify(document);
		if (wrong && !/buffer expected|integer\|Long expected/.test(wrong)) return [wrong];
		const back = type.toObject(type.decode(type.encode(type.fromObject(document)).finish()), { longs: String, bytes: String });
		return difference(document, JSON.parse(JSON.stringify(back)), '');
	};
}

function difference(a, b, path) {
	if (isDeepStrictEqual(a, b)) return [];
	if (typeof a !== 'object' || typeof b !== 'object' || !a || !b)
		return String(a) === String(b) && path.endsWith('intValue') ? [] : [`${path}: ${JSON.stringify(a)} came back as ${JSON.stringify(b)}`];
	for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
		const found = difference(a[key], b[key], `${path}/${key}`);
		if (found.length) return found;
	}
	return [];
}

// Our own, of the document that says which it is; what they say is the same in the draft that the validator knows.
function byOurs() {
	const schemas = json('schemas.json');
	return (document) => {
		const { $schema, ...schema } = schemas[document.schema];
		return bySchema(schema, false)(document);
	};
}

const checks = {
	longpole: byOurs,
	sarif: () => bySchema(require('@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json'), true),
	otlp: byProto,
	speedscope: () => bySchema(require('speedscope/dist/release/file-format-schema.json'), false),
};
const check = checks[kind]();
for (const file of files) {
	const errors = check(json(file));
	if (errors.length) {
		console.error(`${file}: ${errors.join('; ')}`);
		process.exitCode = 1;
	}
}

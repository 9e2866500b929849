import { readFileSync } from 'node:fs';
import { Validator } from '@seriousme/openapi-schema-validator';
import { expect } from 'chai';
import { openApiDocument } from '../../../../scripts/openapi/document.js';
import { reference } from '../../../../scripts/openapi/reference.js';
import { problemCodes } from '../../src/contract/problems.js';
import { problemsOf } from '../../src/contract/route.js';
import { routes } from '../../src/contract/routes.js';

const docs = new URL('../../../../docs/', import.meta.url);
const committed = (name: string) => readFileSync(new URL(name, docs), 'utf8');
type Operation = { operationId: string; parameters: { in: string; name: string }[] };

describe('the documents of the HTTP interface', () => {
  it('are up to date with the schemas', () => {
    const hint = 'run npm run docs';
    expect(committed('openapi.json') === `${JSON.stringify(openApiDocument(), null, 2)}\n`, hint).to.equal(true);
    expect(committed('http-api.md') === reference(), hint).to.equal(true);
  });

  it('are valid OpenAPI 3.1', async () => {
    const validator = new Validator();
    expect(await validator.validate(JSON.parse(committed('openapi.json')))).to.deep.equal({ valid: true });
    expect(validator.version).to.equal('3.1');
  });

  it('refer to nothing that is not there', () => {
    const text = committed('openapi.json');
    const { components } = JSON.parse(text) as { components: { schemas: Record<string, unknown> } };
    const names = [...text.matchAll(/"#\/([^"]*)"/g)].map(([, ref = '']) => ref);
    expect(names).not.to.be.empty;
    expect(names.filter((ref) => !(ref.replace('components/schemas/', '') in components.schemas))).to.deep.equal([]);

    const page = committed('http-api.md');
    const headings = [...page.matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
      heading.toLowerCase().replaceAll(' ', '-'),
    );
    const links = [...page.matchAll(/\]\(#([^)]*)\)/g)].map(([, link]) => link);
    expect(new Set(headings).size).to.equal(headings.length);
    expect(links.filter((link) => !headings.includes(link ?? ''))).to.deep.equal([]);
  });

  it('name every operation once, with each parameter of its path', () => {
    const { paths } = openApiDocument() as unknown as { paths: Record<string, Record<string, Operation>> };
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.values(methods).map((operation) => ({ path, ...operation })),
    );
    expect(operations).to.have.length(routes.length);
    expect(new Set(operations.map(({ operationId }) => operationId)).size).to.equal(routes.length);
    for (const { path, parameters } of operations) {
      const named = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => `{${name}}`);
      expect(path.match(/\{\w+\}/g) ?? []).to.deep.equal(named);
    }
  });

  it('use every problem code somewhere', () => {
    const used = new Set(routes.flatMap(problemsOf));
    expect(problemCodes.filter((code) => !used.has(code))).to.deep.equal([]);
  });
});

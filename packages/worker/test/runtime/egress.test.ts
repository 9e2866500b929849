import type { LookupAddress } from 'node:dns';
import { expect } from 'chai';
import fc from 'fast-check';
import {
  createEgress,
  type Egress,
  type EgressOptions,
  EgressRefused,
  type ResolveName,
} from '../../src/runtime/egress.js';
import { isPublicAddress } from '../../src/runtime/egress-address.js';
import { createModel } from '../../src/runtime/model.js';
import { failureOf, speak, user } from './speak.js';
import { useWireServer } from './wire-server.js';

describe('the way out of a worker', () => {
  const server = useWireServer();
  const opened: Egress[] = [];
  after(() => Promise.all(opened.map((egress) => egress.close())));
  beforeEach(() => server.requests.splice(0));

  const open = (options: Partial<EgressOptions> = {}) => {
    const egress = createEgress({ allowPrivateNetwork: false, ...options });
    opened.push(egress);
    return egress;
  };
  const refusalOf = (running: Promise<unknown>) =>
    running.then(
      () => expect.fail('the request was not refused'),
      (error: unknown) => {
        expect(error).to.be.instanceOf(EgressRefused);
        return error as EgressRefused;
      },
    );

  describe('without private networks', () => {
    const literals = [
      '127.0.0.1',
      '127.1',
      '2130706433',
      '0x7f000001',
      '0177.0.0.1',
      '0.0.0.0',
      '0',
      '[::1]',
      '[::]',
      '[::ffff:127.0.0.1]',
      '[::ffff:7f00:1]',
      '[::7f00:1]',
      '[64:ff9b::127.0.0.1]',
      '[64:ff9b:1::7f00:1]',
      '[2002:7f00:1::]',
      '[2001:0:7f00:1::]',
      '[fe80::1]',
      '[fec0::1]',
      '[fd00:ec2::254]',
      '10.0.0.1',
      '172.16.0.1',
      '192.168.1.1',
      '100.64.0.1',
      '100.100.100.200',
      '169.254.169.254',
      '168.63.129.16',
      '192.0.0.192',
      '198.18.0.1',
      '224.0.0.1',
      '255.255.255.255',
      '①②⑦.0.0.1',
    ];
    for (const host of literals) {
      it(`refuses ${host}`, async () => {
        const refusal = await refusalOf(open().fetch(`http://${host}:${server.port}/`));
        expect(refusal.message)
          .to.match(/private network/)
          .and.not.contain(host)
          .and.not.match(/\d/);
        expect(server.requests).to.deep.equal([]);
      });
    }

    const named: Record<string, string[]> = {
      'a name of loopback': ['127.0.0.1'],
      'a name of loopback in IPv6': ['::1'],
      'a name of the metadata service': ['169.254.169.254'],
      'a name with one private address among public ones': ['93.184.215.14', '127.0.0.1'],
      'a name with a mapped address': ['::ffff:127.0.0.1'],
      'a name with no address at all': [],
    };
    for (const [what, addresses] of Object.entries(named)) {
      it(`refuses ${what}`, async () => {
        const egress = open({ resolveName: resolveTo(addresses) });
        await refusalOf(egress.fetch(`http://some.example:${server.port}/`));
        await refusalOf(egress.fetch(`https://some.example:${server.port}/`));
        expect(server.requests).to.deep.equal([]);
      });
    }

    it('refuses localhost, as the system resolves it', async () => {
      await refusalOf(open().fetch(`http://localhost:${server.port}/`));
    });

    it('reaches a name whose every address is public', async () => {
      server.answer = (_, response) => void response.end('hello');
      const egress = open({ resolveName: resolveTo(['127.0.0.1']), isPublic: onlyServer });
      expect(await (await egress.fetch(`http://some.example:${server.port}/`)).text()).to.equal('hello');
    });

    it('looks at the address of each connection: a name that has turned private is refused', async () => {
      const answers = [['127.0.0.1'], ['127.0.0.2']];
      const egress = open({ resolveName: (...args) => resolveTo(answers.shift()!)(...args), isPublic: onlyServer });
      server.answer = (_, response) => void response.writeHead(200, { connection: 'close' }).end('hello');
      await (await egress.fetch(`http://rebinds.example:${server.port}/`)).text();
      await refusalOf(egress.fetch(`http://rebinds.example:${server.port}/`));
      expect(answers).to.deep.equal([]);
    });

    it('refuses a redirect to a literal address or to a name of the inside', async () => {
      const egress = open({ resolveName: resolveTo(['127.0.0.2']), isPublic: onlyServer });
      for (const location of ['http://127.0.0.2:8080/', 'http://metadata.example/', 'http://[::1]:8080/']) {
        server.answer = (_, response) => void response.writeHead(307, { location }).end();
        await refusalOf(egress.fetch(server.url));
      }
    });

    it('a model at a private address is model_refused, without a second try and without the address', async () => {
      const model = createModel(
        { provider: 'openai-compatible', model: 'm', baseUrl: `${server.url}/v1` },
        { fetch: open().fetch },
      );
      const failure = failureOf(await speak({ model, messages: [user('hi')] }));
      expect(failure).to.include({ code: 'model_refused' });
      expect(failure.message).to.contain('ALLOW_PRIVATE_NETWORK').and.not.contain('127');
    });
  });

  it('takes public addresses of both families', () => {
    for (const address of ['93.184.215.14', '8.8.8.8', '2606:4700::1111', '::ffff:8.8.8.8', '64:ff9b::8.8.8.8']) {
      expect(isPublicAddress(address), address).to.equal(true);
    }
  });

  it('takes an IPv4 address for what it is, in whichever IPv6 form it comes', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        for (const form of [`::ffff:${address}`, `64:ff9b::${address}`]) {
          expect(isPublicAddress(form)).to.equal(isPublicAddress(address));
        }
      }),
    );
  });

  it('takes nothing that is no address for public', () => {
    for (const text of ['', 'localhost', 'example.org', '1.2.3.4.5', ':::', '[]']) {
      expect(isPublicAddress(text), text).to.equal(false);
    }
  });

  it('reaches loopback where private networks are allowed', async () => {
    server.answer = (_, response) => void response.end('hello');
    const response = await open({ allowPrivateNetwork: true }).fetch(server.url);
    expect(await response.text()).to.equal('hello');
  });

  describe('redirects', () => {
    const redirect = (status: number, locations: Record<string, string>) => {
      server.answer = ({ url }, response) => {
        const location = locations[url];
        if (location === undefined) return void response.end(`at ${url}`);
        response.writeHead(status, { location }).end('moved');
      };
    };
    const secret = { authorization: 'Bearer s', 'x-api-key': 's', 'x-goog-api-key': 's', cookie: 's' };
    const post = { method: 'POST', body: '{"a":1}', headers: { ...secret, 'content-type': 'application/json' } };

    it('are followed five times and no further', async () => {
      const { fetch } = open({ allowPrivateNetwork: true });
      const chain = (length: number) =>
        Object.fromEntries(Array.from({ length }, (_, index) => [`/${index}`, `/${index + 1}`]));
      redirect(302, chain(5));
      expect(await (await fetch(`${server.url}/0`)).text()).to.equal('at /5');
      redirect(302, chain(6));
      expect((await refusalOf(fetch(`${server.url}/0`))).message).to.contain('more than 5 times');
    });

    for (const location of ['file:///etc/passwd', 'ftp://127.0.0.1/', 'javascript:alert(1)', 'http://']) {
      it(`to ${location} are refused`, async () => {
        redirect(302, { '/': location });
        await refusalOf(open({ allowPrivateNetwork: true }).fetch(server.url));
      });
    }

    it('repeat the request for 307 and 308, and go on as GET for 301, 302 and 303', async () => {
      const { fetch } = open({ allowPrivateNetwork: true });
      for (const status of [301, 302, 303, 307, 308]) {
        redirect(status, { '/from': '/to' });
        await (await fetch(`${server.url}/from`, post)).text();
        const repeats = status >= 307;
        expect(server.last).to.include({ method: repeats ? 'POST' : 'GET', body: repeats ? post.body : '' });
        expect(server.last.headers).to.include({ authorization: 'Bearer s', 'x-api-key': 's' });
        expect('content-type' in server.last.headers).to.equal(repeats);
      }
    });

    it('take no credential to another origin', async () => {
      const { fetch } = open({ allowPrivateNetwork: true });
      redirect(307, { '/from': `http://localhost:${server.port}/to` });
      await (await fetch(`${server.url}/from`, post)).text();
      expect(server.last).to.include({ url: '/to', body: post.body });
      for (const name of Object.keys(secret)) expect(server.last.headers).not.to.have.property(name);
    });
  });

  it('leaves no connection behind when it is closed, and can be closed twice', async () => {
    const egress = createEgress({ allowPrivateNetwork: true });
    server.answer = (_, response) => void response.write('never ends');
    const response = await egress.fetch(server.url);
    await egress.close();
    await egress.close();
    expect(await server.last.over).to.equal(false);
    await response.text().then(
      () => expect.fail('the request went on'),
      () => undefined,
    );
  });
});

/** Lets the test's server stand for the public internet, so that no test leaves the machine. */
function onlyServer(address: string): boolean {
  return address === '127.0.0.1';
}

/** A look-up that answers as `dns.lookup` with `all` does. */
function resolveTo(addresses: string[]): ResolveName {
  const all: LookupAddress[] = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  return (_hostname, _options, callback) => process.nextTick(callback, null, all);
}

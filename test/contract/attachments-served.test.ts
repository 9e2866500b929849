import { deflateSync } from 'node:zlib';
import { expect } from 'chai';
import { download, inline, PNG, type Sent, upload } from '../support/attachments.js';
import type { Chat } from '../support/chat.js';
import { expectProblem } from '../support/problem.js';
import { useCluster } from '../support/suite.js';

describe('attachments are served so that nothing of them runs (section 5)', () => {
  const cluster = useCluster({ mains: 1, workers: 0 });
  let chat: Chat;
  before(async () => {
    chat = await cluster.newChat();
  });

  /** Uploads a file and reads it back. */
  async function served(bytes: Buffer, disposition = 'filename="file"', mimeType = 'application/octet-stream') {
    const response = await upload(chat, bytes, { disposition, mimeType });
    expect(response.status, response.text).to.equal(201);
    const sent = response.json<Sent>();
    const answer = await download(chat, sent.attachmentId);
    expect(answer.status).to.equal(200);
    expect(answer.bytes.equals(bytes)).to.equal(true);
    const type = String(answer.headers['content-type']);
    expect(type.split(';')[0]).to.equal(sent.mimeType);
    return { sent, type, disposition: String(answer.headers['content-disposition']), headers: answer.headers };
  }

  const text = (content: string) => Buffer.from(content);
  const GIF = Buffer.from('R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7', 'base64');
  const JPEG = Buffer.concat([
    Buffer.from('ffd8ffe000104a46494600010100000100010000', 'hex'),
    Buffer.from('ffd9', 'hex'),
  ]);
  const WEBP = Buffer.from('UklGRiQAAABXRUJQVlA4IBgAAAAwAQCdASoBAAEAAUAmJaQAA3AA/v89WAAAAA==', 'base64');
  const HTML = text('<!doctype html><script>alert(1)</script>');
  const SVG = text('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>');
  const XML_SVG = Buffer.concat([text('<?xml version="1.0"?>\n'), SVG]);

  const images: Record<string, [Buffer, string]> = {
    PNG: [PNG, 'image/png'],
    JPEG: [JPEG, 'image/jpeg'],
    GIF: [GIF, 'image/gif'],
    WebP: [WEBP, 'image/webp'],
  };
  for (const [what, [bytes, type]] of Object.entries(images)) {
    it(`${what} in place, whatever it was said to be, and still sandboxed`, async () => {
      const answer = await served(bytes, 'filename="page.html"', 'text/html');
      expect(answer.type).to.equal(type);
      expect(answer.disposition).to.match(/^inline; filename="page\.html"$/);
      expectSandbox(answer.headers);
    });
  }

  const downloads: Record<string, [Buffer, string]> = {
    'HTML that is said to be an image': [HTML, 'text/plain; charset=utf-8'],
    'SVG without a declaration': [SVG, 'text/plain; charset=utf-8'],
    'SVG as XML': [XML_SVG, 'application/xml'],
    'a PDF': [text('%PDF-1.4\n1 0 obj\n<<>>\nendobj\n'), 'application/pdf'],
    'a text that begins like a bitmap': [text('BMW is a maker of cars.\n'), 'text/plain; charset=utf-8'],
    'a text that begins like a GIF': [text('GIFs are fun, 🎉'), 'text/plain; charset=utf-8'],
    'a text that begins like a program': [text('MZ is not only a signature'), 'text/plain; charset=utf-8'],
    'a text with a byte order mark': [text('\uFEFFWindows wrote this'), 'text/plain; charset=utf-8'],
    'a text in another encoding': [Buffer.from('Z\xfcrich', 'latin1'), 'application/octet-stream'],
    'a text in UTF-16': [Buffer.from('\ufeffnotes', 'utf16le'), 'application/octet-stream'],
    'bytes with a zero': [text('a\0b'), 'application/octet-stream'],
    'a program': [Buffer.concat([text('MZ'), deflateSync(text('x'.repeat(100)))]), 'application/x-msdownload'],
  };
  for (const [what, [bytes, type]] of Object.entries(downloads)) {
    it(`${what} as a download of its sniffed type`, async () => {
      const answer = await served(bytes, 'filename="picture.svg"', 'image/png');
      expect(answer.type).to.equal(type);
      expect(answer.disposition).to.equal('attachment; filename="picture.svg"');
      expectSandbox(answer.headers);
    });
  }

  it('an image that goes on as HTML is an image to every browser', async () => {
    const answer = await served(Buffer.concat([PNG, HTML]), 'filename="x.html"', 'text/html');
    expect(answer.type).to.equal('image/png');
    expectSandbox(answer.headers);
  });

  const names: Record<string, [string, string, RegExp]> = {
    'a quote': ['filename="a\\"b.txt"', 'a"b.txt', /^attachment; filename="a\\"b\.txt"$/],
    'other scripts': [
      'filename="Zürich 东京 😀.txt"',
      'Zürich 东京 😀.txt',
      /filename\*=UTF-8''Z%C3%BCrich%20%E4%B8%9C/,
    ],
    'an encoded name': [`filename*=UTF-8''Z%C3%BCrich.txt`, 'Zürich.txt', /filename\*=UTF-8''Z%C3%BCrich\.txt$/],
    'a path upwards': ['filename="../../etc/passwd"', 'passwd', /^attachment; filename="passwd"$/],
    'a semicolon': [
      'filename="a; filename=evil.html"',
      'a; filename=evil.html',
      /^attachment; filename="a; filename=evil\.html"$/,
    ],
  };
  for (const [what, [disposition, fileName, header]] of Object.entries(names)) {
    it(`a form’s file name with ${what}`, async () => {
      const answer = await served(text('x'), disposition);
      expect(answer.sent.fileName).to.equal(fileName);
      expect(answer.disposition).to.match(header);
    });
  }

  it('a file name of JSON comes back as it went in; as a name to save, it is no path', async () => {
    const fileNames = ['../../etc/passwd', '..\\..\\boot.ini', '..', '"; x="y', 'a\u202Egpj.exe', 'é'.repeat(255)];
    for (const fileName of fileNames) {
      const { sessionId } = await chat.accept('x', { attachments: [inline(text('x'), fileName)] });
      const [item] = (await chat.queue(sessionId)).items as unknown as { attachments: Sent[] }[];
      expect(item?.attachments[0]?.fileName).to.equal(fileName);
      const answer = await download(chat, String(item?.attachments[0]?.attachmentId));
      const disposition = String(answer.headers['content-disposition']);
      expect(disposition, fileName).to.match(/^attachment; filename="/);
      expect(disposition).to.match(/^[\x20-\x7e]+$/);
      expect(disposition.replaceAll('\\"', '')).not.to.match(/[/\\]|filename="\.*"|\.\.%2F|%5C/i);
    }
  });

  it('400 for a form’s file name with a line break, or none', async () => {
    for (const disposition of [`filename*=UTF-8''a%0D%0Ab.txt`, 'filename="a\tb"', 'filename=""'])
      expectProblem(await upload(chat, text('x'), { disposition }), 400, 'invalid_request');
  });

  it('a type with parameters may be said, and is not believed', async () => {
    for (const mimeType of ['text/html; charset=utf-8', 'text/html;charset="utf-8"', 'a/b ; x=y; z']) {
      const { sessionId } = await chat.accept('x', { attachments: [inline(text('x'), 'x', mimeType)] });
      const [item] = (await chat.queue(sessionId)).items as unknown as { attachments: Sent[] }[];
      expect(item?.attachments[0]?.mimeType).to.equal('text/plain');
    }
    for (const mimeType of ['text/html\r\nx: y', 'text/html, text/plain', 'text/hätml']) {
      const body = { message: 'x', attachments: [inline(text('x'), 'x', mimeType)] };
      expectProblem(await chat.post(body), 400, 'invalid_request');
    }
  });
});

function expectSandbox(headers: Record<string, unknown>): void {
  expect(headers).to.include({
    'x-content-type-options': 'nosniff',
    'content-security-policy': "default-src 'none'; sandbox",
    'cross-origin-resource-policy': 'same-origin',
    'cache-control': 'private, no-store',
  });
}

import { readS3Settings } from '@turnkeep/shared/attachments/s3-settings';
import { expect } from 'chai';

describe('ATTACHMENTS_URL (section 1)', () => {
  const keys = { AWS_ACCESS_KEY_ID: 'id', AWS_SECRET_ACCESS_KEY: 'very-secret' };
  const read = (url: string, env: Record<string, string> = keys) => readS3Settings({ ATTACHMENTS_URL: url, ...env });

  it('is nothing where it is not set: attachments stay in Postgres, whatever AWS_* says', () => {
    expect(readS3Settings({ ...keys, AWS_SESSION_TOKEN: 'x' })).to.equal(null);
    expect(read('')).to.equal(null);
  });

  it('names a bucket, a prefix and an endpoint', () => {
    expect(read('s3://files/team/chat/?endpoint=http://127.0.0.1:9000/')).to.deep.equal({
      endpoint: 'http://127.0.0.1:9000',
      bucket: 'files',
      prefix: 'team/chat/',
      region: 'us-east-1',
      accessKeyId: 'id',
      secretAccessKey: 'very-secret',
    });
    expect(read('s3://files?endpoint=https://s3.example.org', { ...keys, AWS_REGION: 'auto' })).to.include({
      endpoint: 'https://s3.example.org',
      prefix: '',
      region: 'auto',
    });
  });

  it('is at Amazon without an endpoint, in the region that AWS_REGION names', () => {
    const settings = read('s3://my.files', { ...keys, AWS_REGION: 'eu-central-1' });
    expect(settings?.endpoint).to.equal('https://s3.eu-central-1.amazonaws.com');
  });

  const malformed = [
    'https://files.example.org',
    's3://',
    's3://ab',
    's3://UPPER_case',
    's3://id:secret@files',
    's3://files?endpoint=ftp://x',
    's3://files?endpoint=x',
    's3://files?endpoint=http://id:secret@host',
    's3://files?region=eu',
    's3://files?endpoint=http://a&endpoint=http://b',
    's3://files/a b',
    's3://files/a%2Fb',
  ];
  for (const url of malformed) {
    it(`is refused by its name, and not repeated: ${url}`, () => {
      expect(() => read(url, { ...keys, AWS_REGION: 'x' }))
        .to.throw(/^ATTACHMENTS_URL/)
        .and.satisfy((error: Error) => !error.message.includes(url));
    });
  }

  it('asks by name for the credentials that it needs', () => {
    const url = 's3://files?endpoint=http://127.0.0.1:9000';
    expect(() => read(url, { AWS_SECRET_ACCESS_KEY: 'x' })).to.throw(/^AWS_ACCESS_KEY_ID is missing/);
    expect(() => read(url, { AWS_ACCESS_KEY_ID: 'x' })).to.throw(/^AWS_SECRET_ACCESS_KEY is missing/);
    expect(() => read('s3://files')).to.throw(/^AWS_REGION is missing/);
    expect(() => read(url, { ...keys, AWS_SESSION_TOKEN: 'x' })).to.throw(/^AWS_SESSION_TOKEN/);
    expect(() => read(url, { ...keys, AWS_REGION: 'not/a/region' })).to.throw(/^AWS_REGION/);
  });
});

import { expect, it } from 'vitest'
import { compressed, findServers, fourLetterWord, nodeTransport, utf8 } from './index.ts'

it.each<[name: string, call: (options: object) => unknown, options: object, message: RegExp]>([
  [
    'fourLetterWord',
    (o) => fourLetterWord('a:1', 'ruok', o),
    { timeout: 5 },
    /got timeout\. Did you mean timeoutMs/,
  ],
  [
    'fourLetterWord',
    (o) => fourLetterWord('a:1', 'ruok', o),
    { timeoutMs: 'soon' },
    /timeoutMs to be milliseconds/,
  ],
  [
    'fourLetterWord',
    (o) => fourLetterWord('a:1', 'ruok', o),
    { transport: {} },
    /transport to be an object with open/,
  ],
  ['findServers', (o) => findServers('a:1', o), { sginal: 5 }, /got sginal\. Did you mean signal/],
  ['nodeTransport', (o) => nodeTransport(o), { ca: 'ca.pem' }, /Expected options among tls, got ca/],
  [
    'nodeTransport',
    (o) => nodeTransport({ tls: o }),
    { truststore: { path: 'x' } },
    /Did you mean trustStore/,
  ],
  [
    'nodeTransport',
    (o) => nodeTransport({ tls: o }),
    { trustStore: 'ca.pem' },
    /an object with the path of a file/,
  ],
  [
    'nodeTransport',
    (o) => nodeTransport({ tls: o }),
    { verifyHostName: 'no' },
    /verifyHostName to be true or false/,
  ],
  ['compressed', (o) => compressed(utf8, o), { maxLength: 5 }, /Expected options among maxBytes/],
  ['compressed', (o) => compressed(utf8, o), { maxBytes: 0 }, /maxBytes to be whole bytes from 1/],
])('%s rejects options with a wrong name or kind', async (_name, call, options, message) => {
  await expect((async () => call(options))()).rejects.toMatchObject({
    code: 'USAGE',
    message: expect.stringMatching(message) as unknown,
  })
})

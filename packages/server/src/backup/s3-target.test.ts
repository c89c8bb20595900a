import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { DiskError, ManualClock, SeededRandom } from '@zabra/runtime'
import { nodeClock, nodeCryptography } from '@zabra/runtime/node'
import { syncCompression } from '@zabra/testkit'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { AdminTarget } from '../admin/index.ts'
import { localSource } from '../admin/local-source.ts'
import { TestServer } from '../testing/test-server.ts'
import { writeBackup } from './backup-writer.ts'
import { Catalog, type BackupStore } from './catalog.ts'
import { isRemoteTarget, openTarget, parseCredentials } from './open-target.ts'
import { S3Target, type S3Options } from './s3-target.ts'
import { parseKey } from './sealing.ts'
import { chunksOf, oneChunk, type BackupTarget } from './target.ts'
import { verifyDeep } from './verify.ts'

const PYTHON = `
import importlib.util, sys
sys.exit(0 if importlib.util.find_spec('moto') and importlib.util.find_spec('flask') else 1)`
/** A Python with moto, where that is not the first one. */
const python = process.env['ZABRA_PYTHON'] ?? 'python3'
const hasMoto = spawnSync(python, ['-c', PYTHON]).status === 0
const SERVE = `
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address='127.0.0.1', port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()`

const credentials = { accessKeyId: 'ada', secretAccessKey: 'secret' }
/** A clock that does not wait. */
const clock = {
  wall: () => Date.now(),
  after: (ms: number, name: string, action: () => void) =>
    ms >= 60_000 ? nodeClock.after(ms, name, action) : nodeClock.after(0, name, action),
}

/** Does something to a request instead of passing it on; returns false for one that is to be passed on. */
type Fault = (incoming: IncomingMessage, response: ServerResponse) => boolean

const answer =
  (status: number, code: string, headers: Record<string, string> = {}): Fault =>
  (incoming, response) => {
    incoming.resume()
    response.writeHead(status, headers).end(`<Error><Code>${code}</Code></Error>`)
    return true
  }
const reset: Fault = (incoming) => {
  incoming.socket.destroy()
  return true
}

/** A store that moto serves, behind a proxy that injects faults. */
class Store {
  readonly seen: string[] = []
  faults: Fault[] = []
  /** Names in an answer of a list. */
  pageSize = 1000
  readonly #moto: ChildProcess
  readonly #proxy: Server

  private constructor(moto: ChildProcess, port: number) {
    this.#moto = moto
    this.#proxy = createServer((incoming, response) => {
      this.seen.push(`${incoming.method} ${incoming.url}`)
      if (this.faults.shift()?.(incoming, response) === true) return
      const { method, url, headers } = incoming
      const path = url!.includes('list-type') ? `${url}&max-keys=${this.pageSize}` : url
      const forwarded = request({ port, host: '127.0.0.1', method, path, headers }, (answered) => {
        response.writeHead(answered.statusCode!, answered.headers)
        answered.pipe(response)
      })
      forwarded.on('error', () => response.destroy())
      incoming.pipe(forwarded)
    })
  }

  static async start(): Promise<Store> {
    const moto = spawn(python, ['-c', SERVE], { stdio: ['pipe', 'pipe', 'ignore'] })
    const port = await new Promise<number>((resolve, reject) => {
      moto.stdout.once('data', (line: Buffer) => resolve(Number(line.toString())))
      moto.once('exit', () => reject(new Error('moto has ended')))
    })
    const store = new Store(moto, port)
    await new Promise<void>((resolve) => store.#proxy.listen(0, '127.0.0.1', resolve))
    const created = await fetch(`${store.endpoint}/bucket`, { method: 'PUT' })
    expect(created.status).toBe(200)
    return store
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#proxy.address() as AddressInfo).port}`
  }

  async stop(): Promise<void> {
    this.#proxy.closeAllConnections()
    await new Promise((resolve) => this.#proxy.close(resolve))
    this.#moto.stdin!.end()
    this.#moto.kill('SIGKILL')
  }

  target(options: Partial<S3Options> = {}): S3Target {
    return new S3Target({
      bucket: 'bucket',
      prefix: 'orders/a',
      region: 'us-east-1',
      endpoint: this.endpoint,
      credentials: async () => credentials,
      cryptography: nodeCryptography,
      clock,
      partBytes: 5 << 20,
      ...options,
    })
  }
}

/** Yields bytes in chunks that are reused, as a caller may do. */
async function* chunked(bytes: Uint8Array, size = 100_000): AsyncGenerator<Uint8Array> {
  const chunk = new Uint8Array(size)
  for (let at = 0; at < bytes.length; at += size) {
    const part = bytes.subarray(at, at + size)
    chunk.set(part)
    yield chunk.subarray(0, part.length)
  }
}

async function contentOf(target: BackupTarget, name: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  for await (const chunk of chunksOf(await target.open(name))) chunks.push(chunk)
  return Buffer.concat(chunks)
}

const pattern = (length: number): Uint8Array =>
  Uint8Array.from({ length }, (_, index) => (index * 31 + (index >> 8)) & 0xff)
const text = (value: string) => oneChunk(new TextEncoder().encode(value))

describe.runIf(hasMoto)(`an S3 target${hasMoto ? '' : ' (skipped: moto is not installed)'}`, () => {
  let store: Store
  let target: S3Target

  beforeAll(async () => {
    store = await Store.start()
  })
  afterAll(() => store.stop())
  beforeEach(() => {
    store.faults = []
    store.pageSize = 1000
    store.seen.length = 0
    target = store.target()
  })

  it('writes, lists, reads and removes objects', async () => {
    await target.write('manifest/a.json', text('one'))
    await target.write('manifest/b+ä.json', text('two'))
    await target.write('manifest/inner/c.json', text('three'))
    expect((await target.list('manifest')).toSorted()).toEqual(['a.json', 'b+ä.json'])
    expect(await target.list('none')).toEqual([])
    expect(new TextDecoder().decode(await contentOf(target, 'manifest/b+ä.json'))).toBe('two')
    await target.write('manifest/a.json', text(''))
    expect(await contentOf(target, 'manifest/a.json')).toHaveLength(0)
    await target.remove('manifest/a.json')
    await target.remove('manifest/a.json')
    expect(await target.list('manifest')).toEqual(['b+ä.json'])
    await expect(target.open('manifest/a.json')).rejects.toThrow(DiskError)
    expect(store.seen.every((line) => line.includes('/bucket'))).toBe(true)
  })

  it('creates an object once, of several callers for one', async () => {
    const bytes = (value: string) => new TextEncoder().encode(value)
    expect(await target.create('lineage', bytes('one'))).toBe(true)
    const created = await Promise.all(['two', 'three'].map((value) => target.create('lineage', bytes(value))))
    expect(created).toEqual([false, false])
    expect(new TextDecoder().decode(await contentOf(target, 'lineage'))).toBe('one')
  })

  it('lists more names than one answer holds', async () => {
    store.pageSize = 2
    const names = Array.from({ length: 5 }, (_, index) => `n${index}`)
    for (const name of names) await target.write(`many/${name}`, text(name))
    expect((await target.list('many')).toSorted()).toEqual(names)
    expect(store.seen.filter((line) => line.includes('list-type'))).toHaveLength(3)
  })

  it('writes long objects in parts, and reads any range of them', async () => {
    const bytes = pattern((11 << 20) + 5)
    expect(await target.write('snapshot/long', chunked(bytes))).toBe(bytes.length)
    expect(store.seen.filter((line) => line.includes('partNumber'))).toHaveLength(3)
    expect(Buffer.compare(await contentOf(target, 'snapshot/long'), bytes)).toBe(0)
    const reader = await target.open('snapshot/long')
    const range = new Uint8Array(1000)
    expect(await reader.read(range, 10_000_000)).toBe(1000)
    expect(range).toEqual(bytes.subarray(10_000_000, 10_001_000))
    expect(await reader.size()).toBe(bytes.length)
  })

  it('repeats requests that the store does not answer or cannot serve', async () => {
    const bytes = pattern(6 << 20)
    store.faults = [answer(503, 'SlowDown'), answer(500, 'InternalError'), reset, () => false, reset]
    await target.write('snapshot/retried', chunked(bytes))
    store.faults = [reset, answer(503, 'SlowDown')]
    expect(Buffer.compare(await contentOf(target, 'snapshot/retried'), bytes)).toBe(0)
  })

  it('takes the time of the store where its own clock is wrong', async () => {
    const late = { ...clock, wall: () => Date.now() - 20 * 60_000 }
    store.faults = [
      answer(403, 'RequestTimeTooSkewed', { date: new Date().toUTCString() }),
      (incoming) => {
        const sent = String(incoming.headers['x-amz-date'])
        const at = Date.parse(sent.replace(/(....)(..)(..)T(..)(..)(..)Z/, '$1-$2-$3T$4:$5:$6Z'))
        expect(Math.abs(Date.now() - at)).toBeLessThan(60_000)
        return false
      },
    ]
    await store.target({ clock: late }).write('skewed', text('x'))
    expect(await contentOf(target, 'skewed')).toHaveLength(1)
  })

  it.each([
    [403, 'AccessDenied', {}, /status 403 \(AccessDenied\)\. Check the credentials/],
    [404, 'NoSuchBucket', {}, /Check the name of the bucket/],
    [301, 'PermanentRedirect', { 'x-amz-bucket-region': 'eu-west-1' }, /the region eu-west-1/],
    [400, 'MalformedXML', {}, /status 400/],
  ] as const)('rejects at once when the store refuses with %i', async (status, code, headers, message) => {
    store.faults = [answer(status, code, headers)]
    const error = await target.write('x', text('x')).catch((reason: unknown) => reason)
    expect(String(error)).toMatch(message)
    expect(String(error)).not.toContain(credentials.secretAccessKey)
    expect(store.seen).toHaveLength(1)
  })

  it('rejects after six attempts', async () => {
    store.faults = Array.from({ length: 9 }, () => reset)
    await expect(target.list('x')).rejects.toThrow(/did not answer as expected in 6 attempts/)
    expect(store.seen).toHaveLength(6)
  })

  it('rejects a listing that does not come to an end', async () => {
    const endless: Fault = (incoming, response) => {
      incoming.resume()
      response.writeHead(200).end('<List><IsTruncated>true</IsTruncated></List>')
      return true
    }
    store.faults = Array.from({ length: 20 }, () => endless)
    await expect(store.target().list('x')).rejects.toThrow(/each after the one before/)
    await expect(store.target().listUnfinished(0)).rejects.toThrow(/each after the one before/)
    expect(store.seen.length).toBeLessThan(6)
    store.faults = []
  })

  it('removes uploads that a crash has cut short, and none of other programs', async () => {
    const target = store.target()
    const name = `snapshot/${'0'.repeat(14)}-1-0a1b2c3d.gz`
    const foreign: string[] = []
    for (const key of [`orders/a/${name}`, 'orders/a/photos/1', 'other/snapshot/1']) {
      const url = `${store.endpoint}/bucket/${key}`
      const text = await (await fetch(`${url}?uploads`, { method: 'POST' })).text()
      const id = /<UploadId>(.*)<\/UploadId>/.exec(text)?.[1]
      if (!key.endsWith(name)) foreign.push(`${url}?uploadId=${id}`)
    }
    const found = await target.listUnfinished(Date.now())
    expect(found).toEqual([expect.stringContaining(`${name}?uploadId=`)])
    expect(await target.listUnfinished(0)).toEqual([])
    for (const one of found) await target.removeUnfinished(one)
    expect(await target.listUnfinished(Date.now())).toEqual([])
    store.faults = [answer(403, 'AccessDenied')]
    expect(await target.listUnfinished(Date.now())).toEqual([])
    for (const url of foreign) expect((await fetch(url, { method: 'DELETE' })).status).toBe(204)
  })

  it('leaves no parts behind when the source fails', async () => {
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield* chunked(pattern(6 << 20))
      throw new Error('the server stops')
    }
    await expect(target.write('snapshot/cut', failing())).rejects.toThrow('the server stops')
    expect(store.seen.at(-1)).toMatch(/^DELETE .*uploadId=/)
    const uploads = await fetch(`${store.endpoint}/bucket?uploads`)
    expect(await uploads.text()).not.toContain('<UploadId>')
    expect(await target.list('snapshot')).not.toContain('cut')
  })

  it('holds encrypted backups, which are verified by replay', async () => {
    const server = await TestServer.start()
    const client = await server.connect()
    client.create(1, '/plaintext-marker')
    await server.untilIdle()
    const backups: BackupStore = {
      target: store.target({ prefix: 'sealed' }),
      cryptography: nodeCryptography,
      random: new SeededRandom(5),
      key: parseKey('ab'.repeat(32), nodeCryptography, 'key'),
    }
    const source = localSource(server.server as unknown as AdminTarget)
    const options = { clock, compression: syncCompression, snapshot: 'if-needed' } as const
    await writeBackup(backups, source, options)
    client.create(2, '/later')
    await server.untilIdle()
    await writeBackup(backups, source, options)
    const catalog = await Catalog.read(backups)
    const chain = catalog.newestChain()
    expect(await verifyDeep(backups, chain, { compression: syncCompression, toEnd: true })).toEqual({
      upTo: server.server.stats().lastZxid,
      defect: undefined,
    })
    for (const folder of ['snapshot', 'log'])
      for (const name of await backups.target.list(folder))
        expect(
          Buffer.from(await contentOf(backups.target, `${folder}/${name}`)).includes('plaintext-marker'),
        ).toBe(false)
    await server.stop()
  })

  it('ends a request that is never answered', async () => {
    const waiting = new ManualClock()
    store.faults = [() => true]
    const listed = store.target({ clock: waiting }).list('x')
    while (store.seen.length === 0) await new Promise((resolve) => setImmediate(resolve))
    waiting.advance(60_000)
    for (;;) {
      // The next attempt waits for its time.
      const isDone = await Promise.race([
        listed.then(() => true),
        new Promise<false>((resolve) => setImmediate(resolve, false)),
      ])
      if (isDone) break
      waiting.advance(1)
    }
    expect(await listed).toEqual([])
  })
})

describe('openTarget', () => {
  const platform = { disk: {} as never, random: new SeededRandom(1), cryptography: nodeCryptography, clock }
  const s3 = { endpoint: undefined, region: 'eu-central-1', credentials: async () => credentials }

  it.each([
    ['/backup/a/', 'file:///backup/a'],
    ['file:///backup/a%20b', 'file:///backup/a b'],
    ['s3://bucket', 's3://bucket'],
    ['s3://bucket/a/b/', 's3://bucket/a/b'],
  ])('opens %s', async (given, url) => {
    expect((await openTarget(given, platform, s3)).url).toBe(url)
  })

  it.each(['backup', 's3://Bucket/x', 's3://', 's3://bucket/a?b', 'file://host/x', 'http://x/y'])(
    'rejects %s',
    async (given) => {
      await expect(openTarget(given, platform, s3)).rejects.toThrow('Expected an absolute folder')
    },
  )

  it('shows no user with a password of a target that it rejects', async () => {
    await expect(openTarget('s3://key:s3cret@bucket/x', platform, s3)).rejects.toThrow(
      /^(?!.*s3cret).*got s3:\/\/\(not shown\)@bucket\/x/,
    )
  })

  it('tells folders from stores', () => {
    expect(['/x', 'x', 'file:///x', 's3://x', 'gs://x'].map(isRemoteTarget)).toEqual([
      false,
      false,
      false,
      true,
      true,
    ])
  })
})

describe('parseCredentials', () => {
  it('reads the section default, and repeats nothing of a file that it cannot read', () => {
    const file =
      '[other]\naws_access_key_id = no\n[default]\naws_access_key_id=a\naws_secret_access_key = s/+\n'
    expect(parseCredentials(file, 'f')).toEqual({
      accessKeyId: 'a',
      secretAccessKey: 's/+',
      sessionToken: undefined,
    })
    expect(() => parseCredentials('hunter2', 'f')).toThrow(/in f, got something else(?!.*hunter2)/)
  })
})

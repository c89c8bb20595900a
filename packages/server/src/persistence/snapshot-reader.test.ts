import { adler32, OPEN_ACL_UNSAFE, writeACL, Writer } from '@zabra/protocol'
import { SeededRandom, type MemoryDisk } from '@zabra/runtime'
import { nodeCompression } from '@zabra/runtime/node'
import { diskWithFolder } from '@zabra/testkit'
import { describe, expect, it } from 'vitest'
import { SessionMap } from '../core/session-map.ts'
import type { Tree } from '../core/tree/index.ts'
import { DamageError } from './errors.ts'
import type { NamedFile } from './file-names.ts'
import { hasFinalSeal, loadSnapshot, loadSnapshotStream, looksComplete } from './snapshot-reader.ts'
import { SnappyCompressor } from './snappy.ts'
import { newTree } from './testing/log-fixture.ts'

const FOLDER = '/data'
const FILE: NamedFile = { name: 'snapshot.9', zxid: 9 }
const MAGIC = 0x5a4b534e

interface Node {
  readonly path: string
  readonly acl?: number
  readonly data?: Uint8Array | null
}

const NODES: readonly Node[] = [
  { path: '' },
  { path: '/a', acl: 1 },
  { path: '/a/b', data: new Uint8Array(9) },
]

/** Writes a snapshot section by section. */
class SnapshotBytes {
  readonly w = new Writer()

  head(magic = MAGIC, version = 2): this {
    this.w.int(magic)
    this.w.int(version)
    this.w.long(-1n)
    return this
  }

  sessions(count = 2): this {
    this.w.int(count)
    for (let i = 0; i < count; i++) {
      this.w.long(BigInt(i + 1))
      this.w.int(1000 * (i + 1))
    }
    return this
  }

  acls(count = 1, entries = 1): this {
    this.w.int(count)
    for (let id = 1; id <= count; id++) {
      this.w.longNumber(id)
      this.w.int(entries)
      for (let i = 0; i < entries; i++)
        writeACL(this.w, { perms: i & 31, id: { scheme: 'ip', id: `10.0.0.${i}` } })
    }
    return this
  }

  nodes(nodes: readonly Node[] = NODES): this {
    const { w } = this
    for (const { path, acl = -1, data = null } of nodes) {
      w.string(path)
      w.buffer(data)
      w.longNumber(acl)
      for (let i = 0; i < 4; i++) w.longNumber(1)
      for (let i = 0; i < 3; i++) w.int(0)
      w.long(0n)
      w.longNumber(1)
    }
    w.string('/')
    return this
  }

  digest(zxid = 9, version = 2, value: readonly [number, number] = [-1, -2]): this {
    this.w.longNumber(zxid)
    this.w.int(version)
    for (const part of value) this.w.int(part)
    return this
  }

  oldDigest(version: number, text: string | null): this {
    this.w.longNumber(9)
    this.w.int(version)
    this.w.string(text)
    return this
  }

  lastZxid(zxid = 12): this {
    this.w.longNumber(zxid)
    return this
  }

  /** Ends a section; `wrong` changes its checksum and its end. */
  seal({ high = 0, off = 0, length = 1, end = 0x2f } = {}): this {
    const { w } = this
    const sum = w.checksum(adler32, 0) + off
    w.int(high)
    w.int(sum | 0)
    w.int(length)
    w.byte(end)
    return this
  }

  get bytes(): Uint8Array {
    return this.w.bytes().slice()
  }
}

const valid = (): SnapshotBytes => new SnapshotBytes().head().sessions().acls().nodes().seal()

async function diskWith(bytes: Uint8Array, name = FILE.name) {
  const disk = await diskWithFolder(FOLDER)
  const writer = await disk.openWrite(`${FOLDER}/${name}`, { create: true, durable: false })
  await writer.write(bytes, 0)
  await writer.sync()
  await writer.close()
  return disk
}

/** Counts the files of a disk that are open. */
function watched(disk: MemoryDisk) {
  let count = 0
  const openRead = disk.openRead.bind(disk)
  disk.openRead = async (path) => {
    const reader = await openRead(path)
    const close = reader.close.bind(reader)
    count++
    reader.close = () => {
      count--
      return close()
    }
    return reader
  }
  return { disk, open: () => count }
}

async function load(content: SnapshotBytes, tree: Tree = newTree(), pause?: () => Promise<void>) {
  return await loadSnapshot(await diskWith(content.bytes), FOLDER, FILE, tree, nodeCompression, pause)
}

describe('a snapshot', () => {
  it('has sessions, lists, nodes, a digest and the last zxid of its writing', async () => {
    const tree = newTree()
    const loaded = await load(valid().digest().seal().lastZxid().seal(), tree)
    expect(loaded).toEqual({
      zxid: 9,
      nodes: 3,
      sessions: new SessionMap([
        [1n, 1000],
        [2n, 2000],
      ]),
      digest: { zxid: 9, value: { hi: 0xffff_ffff, lo: 0xffff_fffe } },
      lastZxid: 12,
      nodesWithoutAcl: [],
    })
    expect([tree.lastZxid, tree.dataOf(tree.find('/a/b'))!.length, tree.aclOf(tree.find('/a'))]).toEqual([
      9,
      9,
      [{ perms: 0, id: { scheme: 'ip', id: '10.0.0.0' } }],
    ])
    expect(tree.aclOf(tree.find('/a/b'))).toEqual(OPEN_ACL_UNSAFE)
  })

  it('may end after its nodes, or after its digest', async () => {
    expect(await load(valid())).toMatchObject({ digest: undefined, lastZxid: undefined })
    expect(await load(valid().digest().seal())).toMatchObject({ digest: { zxid: 9 }, lastZxid: undefined })
  })

  it.each([
    [0, null],
    [1, 'text'],
    [1, ''],
  ])('with a digest of version %i has none that can be compared', async (version, text) => {
    const content = valid().oldDigest(version, text).seal().lastZxid().seal()
    expect(await load(content)).toMatchObject({ digest: undefined, lastZxid: 12 })
  })

  it('with a digest of a later version has none that can be compared', async () => {
    expect(await load(valid().digest(9, 3).seal())).toMatchObject({ digest: undefined })
  })

  it('may have no sessions, and no lists', async () => {
    const content = new SnapshotBytes()
      .head()
      .sessions(0)
      .acls(0)
      .nodes([{ path: '' }])
      .seal()
    expect(await load(content)).toMatchObject({ nodes: 1, sessions: new SessionMap() })
  })

  it('is closed once it is loaded, and when it is rejected', async () => {
    const truncated = valid().bytes.subarray(0, 100)
    for (const bytes of [valid().bytes, truncated]) {
      const { disk, open } = watched(await diskWith(bytes))
      await loadSnapshot(disk, FOLDER, FILE, newTree(), nodeCompression).catch(() => {})
      expect(open()).toBe(0)
    }
  })

  it('names the nodes whose access control list it lacks', async () => {
    const nodes = [{ path: '' }, { path: '/a', acl: 7 }, { path: '/b', acl: 1 }, { path: '/c', acl: 2 }]
    const { nodesWithoutAcl } = await load(new SnapshotBytes().head().sessions().acls().nodes(nodes).seal())
    expect(nodesWithoutAcl).toEqual(['/a', '/c'])
  })

  it('has lists longer than what is read at once', async () => {
    const tree = newTree()
    // More than the 512 KiB of a chunk.
    await load(new SnapshotBytes().head().sessions().acls(1, 30_000).nodes().seal(), tree)
    expect(tree.aclOf(tree.find('/a'))!.length).toBe(30_000)
  })

  it('has more sessions, and longer data, than what is read at once', async () => {
    const tree = newTree()
    const nodes = [{ path: '' }, { path: '/a', data: new Uint8Array(1 << 20).fill(5) }, { path: '/b' }]
    const { sessions } = await load(
      new SnapshotBytes().head().sessions(60_000).acls().nodes(nodes).seal(),
      tree,
    )
    expect([sessions.size, sessions.get(60_000n)]).toEqual([60_000, 60_000_000])
    expect([tree.dataOf(tree.find('/a'))!.every((byte) => byte === 5), tree.has('/b')]).toEqual([true, true])
  })

  it('lets other work run before each chunk of its file, its first node, and every 64 nodes after it', async () => {
    const counts = await Promise.all(
      [63, 64, 127, 128].map(async (last) => {
        const nodes = [{ path: '' }, ...Array.from({ length: last - 1 }, (_, i) => ({ path: `/${i}` }))]
        let pauses = 0
        const pause = async (): Promise<void> => void pauses++
        await load(new SnapshotBytes().head().sessions().acls().nodes(nodes).seal(), newTree(), pause)
        return pauses
      }),
    )
    // The file is one chunk, and its end is another.
    expect(counts).toEqual([3, 4, 4, 5])
  })

  describe('is rejected', () => {
    const start = (): SnapshotBytes => new SnapshotBytes().head()
    const after = (...path: ('sessions' | 'acls' | 'nodes')[]): SnapshotBytes => {
      const content = start()
      for (const part of path) content[part]()
      return content
    }
    const with4 = (content: SnapshotBytes, value: number): SnapshotBytes => {
      content.w.int(value)
      return content
    }
    it.each<[string, () => SnapshotBytes, string]>([
      [
        'another magic number',
        () =>
          new SnapshotBytes()
            .head(MAGIC + 1)
            .sessions()
            .acls()
            .nodes()
            .seal(),
        'the header',
      ],
      [
        'another version',
        () => new SnapshotBytes().head(MAGIC, 3).sessions().acls().nodes().seal(),
        'the header',
      ],
      ['a negative number of sessions', () => with4(start(), -1), 'Expected the number of sessions, got -1'],
      [
        'a negative number of lists',
        () => with4(after('sessions'), -1),
        'the number of access control lists, got -1',
      ],
      [
        'a list that ends early',
        () => with4(with4(with4(with4(after('sessions'), 1), 0), 1), 5),
        'Expected an access control list',
      ],
      [
        'a path of a negative length',
        () => with4(after('sessions', 'acls'), -1),
        'Expected a length, got -1',
      ],
      [
        'a path of more than 1 GiB',
        () => with4(after('sessions', 'acls'), 0x4000_0001),
        'Expected a length, got 1073741825',
      ],
      [
        'data of a length below -1',
        () => {
          const content = after('sessions', 'acls')
          content.w.string('')
          return with4(content, -2)
        },
        'Expected a length, got -2',
      ],
      [
        'a node before its parent',
        () =>
          start()
            .sessions()
            .acls()
            .nodes([{ path: '' }, { path: '/x/y' }])
            .seal(),
        'Expected the parent of /x/y before it',
      ],
      [
        'an end before the end of the nodes',
        () => after('sessions', 'acls'),
        'more bytes, got the end of the snapshot',
      ],
      [
        'nodes without a seal',
        () => after('sessions', 'acls', 'nodes'),
        'more bytes, got the end of the snapshot',
      ],
      [
        'a wrong checksum of the nodes',
        () => after('sessions', 'acls', 'nodes').seal({ off: 1 }),
        'the seal of the nodes',
      ],
      [
        'a checksum of more than 32 bits',
        () => after('sessions', 'acls', 'nodes').seal({ high: 1 }),
        'the seal of the nodes',
      ],
      [
        'a seal with a longer path',
        () => after('sessions', 'acls', 'nodes').seal({ length: 2 }),
        'the seal of the nodes',
      ],
      [
        'a seal with another path',
        () => after('sessions', 'acls', 'nodes').seal({ end: 0x30 }),
        'the seal of the nodes',
      ],
      ['a wrong checksum of the digest', () => valid().digest().seal({ off: 1 }), 'the seal of the digest'],
      [
        'an old digest of a length below -1',
        () => {
          const content = valid()
          content.w.longNumber(9)
          content.w.int(1)
          return with4(content, -2)
        },
        'Expected a length, got -2',
      ],
      [
        'a wrong checksum of the last zxid',
        () => valid().digest().seal().lastZxid().seal({ off: 1 }),
        'the seal of the last zxid',
      ],
    ])('for %s', async (_, content, message) => {
      const failure = load(content())
      await expect(failure).rejects.toThrow(message)
      await expect(failure).rejects.toBeInstanceOf(DamageError)
    })
  })
})

describe('a streamed snapshot', () => {
  const content = (): SnapshotBytes => new SnapshotBytes().sessions().acls().nodes()
  const stream = async (written: SnapshotBytes, tree = newTree(), chunkBytes = 1 << 20) => {
    const { bytes } = written
    const chunks: Uint8Array[] = []
    for (let at = 0; at < bytes.length; at += chunkBytes) chunks.push(bytes.subarray(at, at + chunkBytes))
    return await loadSnapshotStream({ next: async () => chunks.shift() }, 'the leader', tree, 9)
  }
  const signed = (signature: string): SnapshotBytes => {
    const written = content()
    written.w.string(signature)
    return written
  }

  it('ends with its signature, and leaves the bytes behind it', async () => {
    const written = signed('BenWasHere')
    written.w.int(0x01020304)
    const tree = newTree()
    const { rest, nodes, sessions, nodesWithoutAcl } = await stream(written, tree)
    expect([[...rest], nodes, sessions.size, nodesWithoutAcl, tree.lastZxid]).toEqual([
      [1, 2, 3, 4],
      3,
      2,
      [],
      9,
    ])
  })

  it('may be cut anywhere', async () => {
    const tree = newTree()
    const { nodes, rest } = await stream(signed('BenWasHere'), tree, 1)
    expect([nodes, rest.length, tree.dataOf(tree.find('/a/b'))!.length]).toEqual([3, 0, 9])
  })

  it.each([
    ['BenWasHer', 'Expected the signature BenWasHere, got a string of 9 bytes'],
    ['BenWasThere', 'Expected the signature BenWasHere, got a string of 11 bytes'],
    ['BenWasHerE', 'Expected the signature BenWasHere, got "BenWasHerE"'],
  ])('is rejected with the signature %s', async (signature, message) => {
    await expect(stream(signed(signature))).rejects.toThrow(message)
  })

  it('is rejected for a part of more than 128 MiB, which is not waited for', async () => {
    const written = new SnapshotBytes().sessions().acls()
    written.w.int((1 << 27) + 1)
    await expect(stream(written)).rejects.toThrow('Expected a length, got 134217729')
  })
})

describe('the check of the end of a snapshot', () => {
  const complete = async (bytes: Uint8Array, name = FILE.name): Promise<boolean[]> => {
    const disk = await diskWith(bytes, name)
    return [
      await looksComplete(disk, `${FOLDER}/${name}`),
      await hasFinalSeal(disk, FOLDER, name, nodeCompression),
    ]
  }
  const packed = async (
    pack: { write(b: Uint8Array): Promise<Uint8Array>; end(): Promise<Uint8Array> },
    bytes: Uint8Array,
  ) => {
    const parts = [await pack.write(bytes), await pack.end()]
    return Uint8Array.from(parts.flatMap((part) => [...part]))
  }
  const gzip = (bytes: Uint8Array) => packed(nodeCompression.gzip(), bytes)
  const snappy = (bytes: Uint8Array) => packed(new SnappyCompressor(), bytes)

  it('finds the seal', async () => {
    expect(await complete(valid().bytes)).toEqual([true, true])
    expect(await complete(await gzip(valid().bytes), 'snapshot.9.gz')).toEqual([true, true])
    expect(await complete(await snappy(valid().bytes), 'snapshot.9.snappy')).toEqual([true, true])
  })

  it('finds the seal of a compressed file of several parts', async () => {
    // Bytes that cannot be compressed.
    const data = new SeededRandom(1).bytes(100_000)
    const nodes = [{ path: '' }, { path: '/a', data }]
    const { bytes } = new SnapshotBytes().head().sessions().acls().nodes(nodes).seal()
    for (const [pack, name] of [
      [gzip, 'snapshot.9.gz'],
      [snappy, 'snapshot.9.snappy'],
    ] as const) {
      const file = await pack(bytes)
      // More than is decompressed at once.
      expect(file.length).toBeGreaterThan(1 << 15)
      expect(await complete(file, name)).toEqual([true, true])
    }
  })

  it('fails for a file of less than 10 bytes', async () => {
    const end = [0, 0, 0, 1, 0x2f]
    expect(await complete(Uint8Array.from([0, 0, 0, 0, ...end]))).toEqual([false, false])
    expect(await complete(Uint8Array.from([0, 0, 0, 0, 0, ...end]))).toEqual([true, true])
  })

  it.each([0, 1, 2, 3, 4])('fails for another byte %i of the last five', async (at) => {
    const { bytes } = valid()
    bytes[bytes.length - 5 + at]! ^= 1
    expect(await complete(bytes)).toEqual([false, false])
    expect(await complete(await gzip(bytes), 'snapshot.9.gz')).toEqual([true, false])
    expect(await complete(await snappy(bytes), 'snapshot.9.snappy')).toEqual([true, false])
  })

  it.each([
    ['snapshot.9.gz', [0x1f, 0x8b]],
    ['snapshot.9.snappy', [0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0]],
  ])('fails for a file %s that does not begin as one', async (name, begin) => {
    for (let at = 0; at < begin.length; at++) {
      const bytes = await (name.endsWith('gz') ? gzip : snappy)(valid().bytes)
      bytes[at]! ^= 1
      expect([at, await complete(bytes, name)]).toEqual([at, [false, false]])
    }
  })

  it('fails for a compressed file that is cut, or holds less than a seal', async () => {
    for (const [pack, name] of [
      [gzip, 'snapshot.9.gz'],
      [snappy, 'snapshot.9.snappy'],
    ] as const) {
      const bytes = await pack(valid().bytes)
      expect(await complete(bytes.subarray(0, bytes.length - 20), name)).toEqual([true, false])
      expect(await complete(await pack(Uint8Array.from([0, 0, 1, 0x2f])), name)).toEqual([true, false])
    }
  })

  it('rejects when the disk fails, and closes the file', async () => {
    const { disk, open } = watched(await diskWith(await gzip(valid().bytes), 'snapshot.9.gz'))
    let reads = 0
    disk.injectFault = (call) => (call === 'read' && ++reads > 1 ? { code: 'EIO' } : undefined)
    await expect(hasFinalSeal(disk, FOLDER, 'snapshot.9.gz', nodeCompression)).rejects.toMatchObject({
      code: 'EIO',
    })
    expect(open()).toBe(0)
  })
})

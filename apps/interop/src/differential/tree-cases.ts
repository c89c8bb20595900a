import { bytes, openAcl } from '../harness/bytes.ts'
import { createBody } from '../harness/client.ts'
import { op } from '../harness/opcodes.ts'
import { request, type Step, type AddCase } from './case.ts'
import * as r from './requests.ts'

/** Creates, deletes, versions, paths and sequence numbers. */
export function treeCases(add: AddCase): void {
  createModes(add)
  paths(add)
  versions(add)
  sequences(add)
  deletes(add)
  quotas(add)
  sizes(add)
}

function createModes(add: AddCase): void {
  const families = { create: op.create, create2: op.create2, createContainer: op.createContainer }
  for (const [name, type] of Object.entries(families)) {
    for (const flags of [0, 1, 2, 3, 4, 5, 6, 7, -1, 2147483647]) {
      add(`${name} with flags ${flags}`, (root) => [
        request(type, createBody(`${root}/n`, 'data', flags)),
        r.list2(root),
        r.exists(`${root}/n`),
        r.create(`${root}/n/child`),
      ])
    }
    for (const data of [null, '', 'some']) {
      add(`${name} with data ${JSON.stringify(data)}`, (root) => [
        request(type, createBody(`${root}/n`, data)),
        r.get(`${root}/n`),
      ])
    }
    add(`${name} twice`, (root) => [
      request(type, createBody(`${root}/n`)),
      request(type, createBody(`${root}/n`)),
    ])
    add(`${name} below a missing parent`, (root) => [request(type, createBody(`${root}/none/n`))])
  }
  for (const flags of [5, 6]) {
    for (const ttl of [1n, 60_000n, 1099511627775n, 1099511627776n, 0n, -1n, -(2n ** 63n), 2n ** 63n - 1n]) {
      add(`createTTL with flags ${flags} and ttl ${ttl}`, (root) => [
        request(op.createTTL, r.ttlBody(`${root}/n`, flags, ttl)),
        r.list2(root),
        r.create(`${root}/n/child`),
      ])
    }
  }
  for (const flags of [0, 1, 2, 3, 4, 7, -1]) {
    for (const ttl of [0n, 5000n]) {
      add(`createTTL with flags ${flags} and ttl ${ttl}`, (root) => [
        request(op.createTTL, r.ttlBody(`${root}/n`, flags, ttl)),
        r.list(root),
      ])
    }
  }
  add('a child below an ephemeral node', (root) => [
    r.create(`${root}/e`, '', 1),
    r.create(`${root}/e/c`),
    r.create(`${root}/e/c`, '', 2),
  ])
  add('a child below a container and a TTL node', (root) => [
    request(op.createContainer, createBody(`${root}/c`, '', 4)),
    r.create2(`${root}/c/x`),
    request(op.createTTL, r.ttlBody(`${root}/t`, 5, 60_000n)),
    r.create2(`${root}/t/x`),
    r.list2(`${root}/c`),
    r.list2(`${root}/t`),
  ])
  add('an ephemeral node goes with its session', (root) => [
    r.create2(`${root}/e`, 'x', 1, 'b'),
    r.exists(`${root}/e`),
    r.close('b'),
    r.exists(`${root}/e`),
    r.list2(root),
  ])
}

const badPaths: Record<string, (root: string) => string | Buffer | null> = {
  null: () => null,
  empty: () => '',
  root: () => '/',
  relative: () => 'x',
  'relative with a slash': () => 'x/y',
  'two slashes': () => '//',
  'trailing slash': (root) => `${root}/`,
  'empty component': (root) => `${root}//x`,
  'missing parent': (root) => `${root}/none/x`,
  'missing parent and empty component': (root) => `${root}/none//x`,
  'a dot': (root) => `${root}/.`,
  'two dots': (root) => `${root}/..`,
  'a dot within': (root) => `${root}/./x`,
  'two dots within': (root) => `${root}/../x`,
  'three dots': (root) => `${root}/...`,
  NUL: (root) => `${root}/a\u0000b`,
  'control character': (root) => `${root}/a\u0001b`,
  'unit separator': (root) => `${root}/a\u001f`,
  'delete character': (root) => `${root}/\u007f`,
  'C1 character': (root) => `${root}/\u009f`,
  'no-break space': (root) => `${root}/\u00a0`,
  'private use': (root) => `${root}/\ue000`,
  'end of private use': (root) => `${root}/\uf8ff`,
  'behind private use': (root) => `${root}/\uf900`,
  'before specials': (root) => `${root}/\uffef`,
  specials: (root) => `${root}/\ufff0`,
  'replacement character': (root) => `${root}/\ufffd`,
  'supplementary character': (root) => `${root}/\u{1f600}`,
  spaces: (root) => `${root}/ a b `,
  'Umlaut and CJK': (root) => `${root}/äöü 漢字`,
  'malformed UTF-8': (root) => Buffer.concat([Buffer.from(`${root}/`), Buffer.from('c080', 'hex')]),
  'encoded surrogates': (root) =>
    Buffer.concat([Buffer.from(`${root}/`), Buffer.from('eda0bdedb880', 'hex')]),
  'cut UTF-8': (root) => Buffer.concat([Buffer.from(`${root}/`), Buffer.from('e282', 'hex')]),
  'byte order mark': (root) => Buffer.concat([Buffer.from(`${root}/`), Buffer.from('efbbbf78', 'hex')]),
  '/zookeeper': () => '/zookeeper',
  '/zookeeper/quota': () => '/zookeeper/quota',
  '/zookeeper/config': () => '/zookeeper/config',
}

function paths(add: AddCase): void {
  type Path = string | Buffer | null
  const createRaw = (path: Path, flags: number): Step =>
    request(op.create, bytes().str(path).buffer('d').acl(openAcl).int(flags).done())
  const operations: Record<string, (path: Path) => Step[]> = {
    create: (path) => [createRaw(path, 0)],
    'sequential create': (path) => [createRaw(path, 2)],
    delete: (path) => [r.del(path)],
    exists: (path) => [r.exists(path)],
    setData: (path) => [r.set(path)],
    setACL: (path) => [r.setAcl(path)],
    getACL: (path) => [r.getAcl(path)],
    getChildren: (path) => [r.list(path)],
    sync: (path) => [r.sync(path)],
    getEphemerals: (path) => [r.ephemerals(path)],
    addWatch: (path) => [r.addWatch(path, 0), r.addWatch(path, 1)],
    'multi check': (path) => [r.multi([r.part.check(path)])],
    'multi delete': (path) => [r.multi([r.part.delete(path)])],
    'multi set': (path) => [r.multi([r.part.set(path, 77)])],
    multiRead: (path) => [r.multiRead([r.part.get(path), r.part.list(path)])],
    'watch removal': (path) => [r.checkWatch(path, 3), r.removeWatch(path, 3)],
  }
  for (const [operation, steps] of Object.entries(operations)) {
    for (const [name, path] of Object.entries(badPaths))
      add(`${operation} of path: ${name}`, (root) => steps(path(root)))
  }
  // Counts over the whole tree differ from run to run, so these requests exclude the root.
  for (const [name, path] of Object.entries(badPaths)) {
    if (path('') === '/' || path('') === '') continue
    add(`getData and counts of path: ${name}`, (root) => [
      r.get(path(root)),
      r.count(path(root)),
      r.list2(path(root)),
    ])
  }
}

function versions(add: AddCase): void {
  for (const version of [-2147483648, -2, -1, 0, 1, 2, 7, 2147483647]) {
    const setUp = (root: string): Step[] => [
      r.create(`${root}/v`),
      r.set(`${root}/v`, 'one'),
      r.setAcl(`${root}/v`),
    ]
    add(`setData with version ${version}`, (root) => [...setUp(root), r.set(`${root}/v`, 'two', version)])
    add(`setACL with version ${version}`, (root) => [...setUp(root), r.setAcl(`${root}/v`, openAcl, version)])
    add(`delete with version ${version}`, (root) => [...setUp(root), r.del(`${root}/v`, version)])
    add(`multi check with version ${version}`, (root) => [
      ...setUp(root),
      r.multi([r.part.check(`${root}/v`, version)]),
    ])
  }
  for (const data of [null, '', 'abc', 'ä']) {
    add(`setData to ${JSON.stringify(data)}`, (root) => [
      r.set(root, data),
      r.get(root),
      r.set(root, 'later', 1),
      r.get(root),
    ])
  }
}

function sequences(add: AddCase): void {
  add('sequence numbers count creations, not deletions', (root) => [
    r.create(`${root}/s-`, '', 2),
    r.create(`${root}/plain`),
    r.del(`${root}/plain`),
    r.create2(`${root}/s-`, '', 3),
    r.create2(`${root}/other-`, '', 2),
    r.list2(root),
  ])
  add('a sequential create with nothing but the number', (root) => [
    r.create(`${root}/`, '', 2),
    r.create2(`${root}/`, '', 3),
    r.list2(root),
  ])
  add('a multi with sequential creates', (root) => [
    r.multi([
      r.part.create(`${root}/s`, 2),
      r.part.create2(`${root}/s`, 3),
      r.part.container(`${root}/s`, 2),
      r.part.ttl(`${root}/s`, 6),
    ]),
    r.list2(root),
  ])
  add('a failed multi gives sequence numbers back', (root) => [
    r.multi([r.part.create(`${root}/s`, 2), r.part.check(`${root}/none`)]),
    r.create(`${root}/s`, '', 2),
  ])
  add('a sequential node that exists already', (root) => [
    r.create(`${root}/s0000000001`),
    r.create(`${root}/s`, '', 2),
    r.create(`${root}/s`, '', 2),
  ])
}

function deletes(add: AddCase): void {
  add('delete of a node with children', (root) => [
    r.create(`${root}/a`),
    r.create(`${root}/a/b`),
    r.del(`${root}/a`),
    r.del(`${root}/a`, 4),
    r.list2(root),
  ])
  add('delete twice', (root) => [
    r.create(`${root}/a`),
    r.del(`${root}/a`),
    r.del(`${root}/a`),
    r.list2(root),
  ])
  add("delete of another session's ephemeral node", (root) => [
    r.create(`${root}/e`, '', 1, 'b'),
    r.del(`${root}/e`),
    r.ephemerals('/', 'b'),
    r.close('b'),
    r.list2(root),
  ])
  add('counts of descendants', (root) => [
    r.create(`${root}/a`),
    r.create(`${root}/a/b`),
    r.create(`${root}/a/b/c`),
    r.count(root),
    r.count(`${root}/a`),
    r.count(`${root}/none`),
  ])
  add('ephemerals by prefix', (root) => [
    r.create(`${root}/e1`, '', 1),
    r.create(`${root}/e2`, '', 1),
    r.create(`${root}/x`),
    r.create(`${root}/x/e3`, '', 3),
    ...['/', root, `${root}/e`, `${root}/x`, '', '  ', ` ${root}`, null, '/none'].map((path) =>
      r.ephemerals(path),
    ),
    r.ephemerals('/', 'b'),
  ])
}

/** Quotas whose limits cannot be parsed. */
export function quotaLimitCases(add: AddCase): void {
  const limits = (root: string): string => `/zookeeper/quota${root}`
  for (const [name, data] of [
    ['unparsable limits', 'nonsense'],
    ['null limits', null],
  ] as const)
    for (const stats of ['with', 'without']) {
      add(`quota: ${name} ${stats} stats`, (root) => [
        r.create(limits(root)),
        r.create(`${limits(root)}/zookeeper_limits`, data),
        ...(stats === 'with' ? [r.create(`${limits(root)}/zookeeper_stats`, 'count=1,bytes=0')] : []),
        r.create(`${root}/a`, 'x'),
        r.set(root, 'longer'),
        r.multi([r.part.create(`${root}/b`), r.part.set(root, 2)]),
        r.multi([r.part.check(root), r.part.create(`${root}/c`)]),
        r.list2(root),
      ])
    }
}

function quotas(add: AddCase): void {
  const limits = (root: string): string => `/zookeeper/quota${root}`
  const setUp = (root: string, text: string): Step[] => [
    r.create(limits(root)),
    r.create(`${limits(root)}/zookeeper_limits`, text),
    r.create(`${limits(root)}/zookeeper_stats`, 'count=0,bytes=0'),
  ]
  const read = (root: string): Step => r.get(`${limits(root)}/zookeeper_stats`)
  const texts = {
    soft: 'count=1,bytes=5',
    'hard count': 'count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=3',
    'hard bytes': 'count=-1,bytes=-1=;byteHardLimit=9;countHardLimit=-1',
    'no count': 'bytes=9',
    'all unlimited': 'count=-1,bytes=-1',
  }
  for (const [name, limit] of Object.entries(texts)) {
    add(`quota: ${name}`, (root) => [
      r.create(`${root}/before`, '1234'),
      ...setUp(root, limit),
      read(root),
      r.create(`${root}/one`, '123456'),
      read(root),
      r.create(`${root}/two`, '123456'),
      r.set(`${root}/before`, '12345678'),
      r.set(`${root}/before`, null),
      r.set(`${root}/before`, ''),
      read(root),
      r.del(`${root}/before`),
      read(root),
      r.create(`${root}/three`),
      r.multi([r.part.create(`${root}/m1`), r.part.create(`${root}/m2`)]),
      read(root),
      r.del(`${limits(root)}/zookeeper_limits`),
      r.create(`${root}/free`, '1234567890'),
      r.del(`${limits(root)}/zookeeper_stats`),
      r.del(limits(root)),
    ])
  }
  add('quota: no other subtree is counted', (root) => [
    ...setUp(`${root}/in`, 'count=5,bytes=50'),
    r.create(limits(root)),
    ...setUp(`${root}/in`, 'count=5,bytes=50'),
    r.create(`${root}/in`, 'abc'),
    r.create(`${root}/inner`, 'abc'),
    r.create(`${root}/in/x`, 'abc', 1),
    read(`${root}/in`),
  ])
}

function sizes(add: AddCase): void {
  const filled = (root: string, size: number): Step =>
    request(op.create, bytes().str(`${root}/big`).buffer(Buffer.alloc(size, 120)).acl(openAcl).int(0).done())
  // The frame limit of 1,048,575 bytes covers the data, the path, the ACL and the flags.
  for (const room of [0, -1, 1]) {
    add(`a frame ${room === 0 ? 'at' : `${room} from`} the limit`, (root) => {
      const around = 8 + 4 + root.length + 4 + 4 + 4 + 4 + 4 + 5 + 4 + 6 + 4 + 4
      return [filled(root, 1_048_575 - around + room), r.exists(`${root}/big`), r.get(`${root}/big`)]
    })
  }
  for (const length of [-1, 0, 1, 7, 1_048_576, 2147483647, -2147483648]) {
    add(`a frame that says it has ${length} bytes`, (root) => [
      r.exists(root),
      { do: 'raw', on: 'a', bytes: bytes().int(length).done() },
      r.exists(root),
    ])
  }
}

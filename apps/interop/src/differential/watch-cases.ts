import { createBody } from '../harness/client.ts'
import { op } from '../harness/opcodes.ts'
import { request, type Step, type AddCase } from './case.ts'
import * as r from './requests.ts'

const registrations: Record<string, (path: string) => Step> = {
  exists: (path) => r.exists(path, true),
  getData: (path) => r.get(path, true),
  getChildren: (path) => r.list(path, true),
  getChildren2: (path) => r.list2(path, true),
  persistent: (path) => r.addWatch(path, 0),
  recursive: (path) => r.addWatch(path, 1),
  'setWatches data': (path) => ({ do: 'setWatches', on: 'a', plus: 100, lists: [[path], [], []] }),
  'setWatches exist': (path) => ({ do: 'setWatches', on: 'a', plus: 100, lists: [[], [path], []] }),
  'setWatches child': (path) => ({ do: 'setWatches', on: 'a', plus: 100, lists: [[], [], [path]] }),
  'setWatches2 persistent': (path) => ({
    do: 'setWatches',
    on: 'a',
    plus: 100,
    lists: [[], [], [], [path], []],
  }),
  'setWatches2 recursive': (path) => ({
    do: 'setWatches',
    on: 'a',
    plus: 100,
    lists: [[], [], [], [], [path]],
  }),
}

/** Most triggers fire twice, so that one-shot and persistent watches differ. */
const triggers: Record<string, (node: string) => Step[]> = {
  'data set': (node) => [r.set(node, '1', -1, 'b'), r.set(node, '2', -1, 'b')],
  'deleted and created': (node) => [r.del(node, -1, 'b'), r.create(node, '', 0, 'b'), r.del(node, -1, 'b')],
  'children come and go': (node) => [
    r.create(`${node}/c`, '', 0, 'b'),
    r.create(`${node}/d`, '', 0, 'b'),
    r.del(`${node}/c`, -1, 'b'),
  ],
  'a descendant changes': (node) => [
    r.create(`${node}/c`, '', 0, 'b'),
    r.create(`${node}/c/d`, '', 0, 'b'),
    r.set(`${node}/c/d`, 'x', -1, 'b'),
    r.del(`${node}/c/d`, -1, 'b'),
    r.set(`${node}/c`, 'x', -1, 'b'),
  ],
  'a multi': (node) => [
    r.multi(
      [
        r.part.create(`${node}/m`),
        r.part.set(`${node}/m`),
        r.part.set(node),
        r.part.delete(`${node}/m`),
        r.part.check(node),
        r.part.delete(node),
      ],
      'b',
    ),
  ],
  'an ephemeral child of a closing session': (node) => [
    r.create(`${node}/e`, '', 1, 'b'),
    r.create(`${node}/f`, '', 1, 'c'),
    r.close('b'),
    r.close('c'),
  ],
  'nothing that fires': (node) => [
    r.setAcl(node, undefined, -1, 'b'),
    r.set(node, 'x', 55, 'b'),
    r.create(`${node}/none/n`, '', 0, 'b'),
    r.multi([r.part.set(node), r.part.check(`${node}/none`)], 'b'),
    r.sync(node, 'b'),
  ],
}

export function watchCases(add: AddCase): void {
  for (const [registration, register] of Object.entries(registrations)) {
    for (const [trigger, steps] of Object.entries(triggers)) {
      add(`watch by ${registration}: ${trigger}`, (root) => [
        r.create(`${root}/n`),
        register(`${root}/n`),
        ...steps(`${root}/n`),
      ])
    }
    add(`watch by ${registration} on an absent node`, (root) => [
      register(`${root}/n`),
      r.create(`${root}/n`, '', 0, 'b'),
      r.set(`${root}/n`, '1', -1, 'b'),
      r.create(`${root}/n/c`, '', 0, 'b'),
      r.del(`${root}/n/c`, -1, 'b'),
      r.del(`${root}/n`, -1, 'b'),
    ])
    for (const type of [0, 1, 2, 3, 4, 5, 6, -1]) {
      add(`watch by ${registration}: check and removal of type ${type}`, (root) => [
        r.create(`${root}/n`),
        register(`${root}/n`),
        r.checkWatch(`${root}/n`, type),
        r.checkWatch(`${root}/n`, type, 'b'),
        r.removeWatch(`${root}/n`, type),
        r.removeWatch(`${root}/n`, type),
        r.set(`${root}/n`, '1', -1, 'b'),
        r.create(`${root}/n/c`, '', 0, 'b'),
      ])
    }
  }
  pairs(add)
  catchUp(add)
  others(add)
}

/** Registers two watches on one path, in both orders. */
function pairs(add: AddCase): void {
  const names = ['exists', 'getData', 'getChildren', 'persistent', 'recursive']
  for (const first of names) {
    for (const second of names) {
      add(`watches by ${first}, then ${second}`, (root) => [
        r.create(`${root}/n`),
        registrations[first]!(`${root}/n`),
        registrations[second]!(`${root}/n`),
        r.set(`${root}/n`, '1', -1, 'b'),
        r.set(`${root}/n`, '2', -1, 'b'),
        r.create(`${root}/n/c`, '', 0, 'b'),
        r.del(`${root}/n/c`, -1, 'b'),
        r.del(`${root}/n`, -1, 'b'),
      ])
    }
  }
}

function catchUp(add: AddCase): void {
  const kinds = ['data', 'exist', 'child', 'persistent', 'recursive']
  for (const [position, kind] of kinds.entries()) {
    for (const plus of [0, 1, 2, 3, 100]) {
      add(`catch-up of ${kind} watches since zxid base+${plus}`, (root) => {
        const paths = [`${root}/n`, `${root}/none`, root, `${root}/gone`, 'bad path', '']
        const lists = kinds
          .slice(0, position > 2 ? 5 : 3)
          .map((_, index) => (index === position ? paths : []))
        return [
          r.create(`${root}/n`),
          r.set(`${root}/n`),
          r.create(`${root}/gone`),
          r.del(`${root}/gone`),
          { do: 'setWatches', on: 'a', plus, lists, xid: -8 },
          r.set(`${root}/n`, 'again', -1, 'b'),
          r.create(`${root}/n/c`, '', 0, 'b'),
        ]
      })
    }
  }
  for (const lists of [
    [null, [], []],
    [[], null, []],
    [[], [], null],
    [[], [], [], null, []],
    [[], [], []],
    [[], [], [], [], []],
  ] as const) {
    add(`setWatches with lists ${JSON.stringify(lists)}`, () => [
      { do: 'setWatches', on: 'a', plus: 0, lists: lists.map((list) => list && [...list]) },
    ])
  }
  add('a path in two lists fires twice', (root) => [
    r.set(root),
    { do: 'setWatches', on: 'a', plus: 0, lists: [[root], [root], [root]] },
  ])
}

function others(add: AddCase): void {
  for (const mode of [-1, 2, 3, 2147483647])
    add(`addWatch with mode ${mode}`, (root) => [r.addWatch(root, mode), r.set(root)])
  add('a change tells the client that made it before its reply', (root) => [
    r.get(root, true),
    r.list(root, true),
    r.set(root),
    r.create(`${root}/c`),
  ])
  add('a failed read sets no watch', (root) => [
    r.get(`${root}/n`, true),
    r.list(`${root}/n`, true),
    r.create(`${root}/n`),
  ])
  add('multiRead sets no watch', (root) => [
    r.multiRead([r.part.get(root, true), r.part.list(root, true)]),
    r.set(root),
    r.create(`${root}/c`),
  ])
  add('watches end with their connection', (root) => [
    r.get(root, true),
    { do: 'drop', on: 'a' },
    { do: 'resume', on: 'a2', of: 'a' },
    r.set(root, '', -1, 'b'),
  ])
  add('a recursive watch on the root sees a whole subtree', (root) => [
    r.addWatch('/', 1),
    r.create(`${root}/x`, '', 0, 'b'),
    r.set(`${root}/x`, '', -1, 'b'),
    r.del(`${root}/x`, -1, 'b'),
    r.removeWatch('/', 3),
  ])
  add('a watch through the empty path never fires', () => [
    r.get('', true),
    r.exists('', true),
    r.list('', true),
  ])
  add('deletion fires once for data and child watches', (root) => [
    r.create(`${root}/n`),
    r.get(`${root}/n`, true),
    r.list(`${root}/n`, true),
    r.list(root, true),
    r.del(`${root}/n`),
  ])
  add('containers and TTL nodes fire like others', (root) => [
    r.addWatch(root, 1),
    r.list(root, true),
    request(op.createContainer, createBody(`${root}/c`, '', 4), 'b'),
    request(op.createTTL, r.ttlBody(`${root}/t`, 5, 60_000n), 'b'),
    r.del(`${root}/c`, -1, 'b'),
  ])
}

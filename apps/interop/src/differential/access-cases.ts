import { openAcl, type Acl } from '../harness/bytes.ts'
import type { AddCase, Step } from './case.ts'
import * as r from './requests.ts'

const { acl, bob } = r

/** ACL lists, permissions and authentication. */
export function accessCases(add: AddCase): void {
  lists(add)
  permissions(add)
  authentication(add)
}

function lists(add: AddCase): void {
  const cases: Record<string, readonly Acl[] | null> = {
    null: null,
    empty: [],
    world: openAcl,
    'world and another id': [acl(31, 'world', 'someone')],
    'world and an empty id': [acl(31, 'world', '')],
    'null id of world': [acl(31, 'world', null)],
    'null id of digest': [acl(31, 'digest', null)],
    'null id of ip': [acl(31, 'ip', null)],
    'null id of auth': [acl(31, 'auth', null)],
    'null scheme': [acl(31, null, 'anyone')],
    'empty scheme': [acl(31, '', 'anyone')],
    'unknown scheme': [acl(31, 'nope', 'x')],
    super: [acl(31, 'super', '')],
    sasl: [acl(31, 'sasl', 'bob')],
    x509: [acl(31, 'x509', 'CN=bob')],
    auth: [acl(31, 'auth', '')],
    'auth twice': [acl(1, 'auth', ''), acl(2, 'auth', 'ignored')],
    'good then bad': [acl(31), acl(31, 'nope', 'x')],
    duplicates: [acl(31), acl(31), acl(1), acl(31)],
    'no permission': [acl(0)],
    'all bits': [acl(-1), acl(63)],
  }
  for (const id of ['a:b', ':b', 'a:b:', 'ab', 'a:', 'a:b:c', '', ':', '::', bob])
    cases[`digest id ${JSON.stringify(id)}`] = [acl(31, 'digest', id)]
  for (const id of [
    '127.0.0.1',
    '127.0.0.0/8',
    '0.0.0.0/0',
    '10.0.0.1',
    '1.2.3',
    '1.2.3.4.5',
    '1.2.3.256',
    '1.2.3.4/',
    '1.2.3.4/33',
    '1.2.3.4/-1',
    '1.2.3.4/x',
    'localhost',
    '',
    '+1.2.3.4',
    '01.2.3.4',
    '1.2.3.4/8/9',
    '::1',
    '::/0',
    '2001:db8::/32',
    'fe80::1%eth0',
    '1:2:3:4:5:6:7:8',
    '::ffff:1.2.3.4',
    '1::2::3',
    '::1/129',
  ]) {
    cases[`ip id ${JSON.stringify(id)}`] = [acl(31, 'ip', id)]
  }
  for (const [name, entries] of Object.entries(cases)) {
    add(`create with ACL: ${name}`, (root) => [
      r.create(`${root}/n`, '', 0, 'a', entries),
      r.getAcl(`${root}/n`),
      r.get(`${root}/n`),
    ])
    add(`setACL to: ${name}`, (root) => [
      r.create(`${root}/n`),
      r.setAcl(`${root}/n`, entries),
      r.getAcl(`${root}/n`),
      r.exists(`${root}/n`),
    ])
  }
  for (const name of ['auth', 'auth twice', 'good then bad', 'super']) {
    add(`create by an authenticated client with ACL: ${name}`, (root) => [
      r.auth('digest', 'bob:pw'),
      r.create(`${root}/n`, '', 0, 'a', cases[name]!),
      r.getAcl(`${root}/n`),
      r.getAcl(`${root}/n`, 'b'),
      r.set(`${root}/n`, 'x', -1, 'b'),
      r.setAcl(`${root}/n`, cases[name]!),
    ])
  }
  add('an invalid ACL hides a missing parent', (root) => [r.create(`${root}/none/n`, '', 0, 'a', [])])
  add('a bad path hides an invalid ACL', () => [r.create('nopath', '', 0, 'a', [])])
  add('an invalid ACL hides a missing node', (root) => [r.setAcl(`${root}/none`, [])])
}

function permissions(add: AddCase): void {
  const operations: Record<string, (node: string) => Step> = {
    exists: (node) => r.exists(node),
    getData: (node) => r.get(node),
    setData: (node) => r.set(node),
    getACL: (node) => r.getAcl(node),
    setACL: (node) => r.setAcl(node),
    getChildren: (node) => r.list(node),
    getChildren2: (node) => r.list2(node),
    counts: (node) => r.count(node),
    create: (node) => r.create(`${node}/new`),
    'create of what exists': (node) => r.create(`${node}/child`),
    delete: (node) => r.del(`${node}/child`),
    'delete of what is missing': (node) => r.del(`${node}/none`),
    check: (node) => r.multi([r.part.check(node)]),
    sync: (node) => r.sync(node),
    addWatch: (node) => r.addWatch(node, 0),
    'multi set': (node) => r.multi([r.part.check('/'), r.part.set(node), r.part.create(`${node}/m`)]),
    multiRead: (node) => r.multiRead([r.part.get(node), r.part.list(node), r.part.get('/zookeeper/quota')]),
  }
  for (const [name, operation] of Object.entries(operations)) {
    for (const perms of [0, 1, 2, 4, 8, 16, 31]) {
      add(`${name} with permissions ${perms}`, (root) => [
        r.create(`${root}/n`, 'data'),
        r.create(`${root}/n/child`),
        r.auth('digest', 'bob:pw', 'owner'),
        r.setAcl(`${root}/n`, [acl(perms), acl(31, 'digest', bob)]),
        operation(`${root}/n`),
        r.get(`${root}/n`, false, 'owner'),
      ])
    }
  }
  for (const name of [
    '127.0.0.1',
    '127.0.0.9/8',
    '126.0.0.0/7',
    '10.0.0.0/8',
    '127.0.0.1/32',
    '127.0.0.2/32',
  ]) {
    add(`ip entry ${name} decides`, (root) => [
      r.create(`${root}/n`, '', 0, 'a', [acl(31, 'ip', name)]),
      r.get(`${root}/n`),
      r.set(`${root}/n`),
    ])
  }
  add('a recursive watch tells only what may be read', (root) => [
    r.addWatch(root, 1, 'b'),
    r.auth('digest', 'bob:pw'),
    r.create(`${root}/secret`, '', 0, 'a', [acl(31, 'digest', bob)]),
    r.set(`${root}/secret`),
    r.create(`${root}/open`),
    r.del(`${root}/secret`),
  ])
  add('a watch set before the node became secret', (root) => [
    r.create(`${root}/n`),
    r.get(`${root}/n`, true, 'b'),
    r.list(`${root}/n`, true, 'b'),
    r.auth('digest', 'bob:pw'),
    r.setAcl(`${root}/n`, [acl(31, 'digest', bob)]),
    r.set(`${root}/n`),
    r.create(`${root}/n/c`),
    r.setAcl(`${root}/n`),
    r.set(`${root}/n`),
  ])
}

function authentication(add: AddCase): void {
  const tokens: [string | null, string | null][] = [
    ['digest', 'bob:pw'],
    ['digest', 'al:pw:w'],
    ['digest', 'nocolon'],
    ['digest', ''],
    ['digest', ':'],
    ['digest', ':x'],
    ['digest', 'x:'],
    ['digest', null],
    ['ip', 'x'],
    ['ip', null],
    ['world', 'anyone'],
    ['auth', ''],
    ['super', 'super:secret'],
    ['sasl', 'x'],
    ['nope', 'x'],
    ['', 'x'],
    [null, 'x'],
    ['DIGEST', 'bob:pw'],
    ['digest', 'super:secret'],
    ['digest', 'super:wrong'],
    ['digest', 'ä:ö'],
  ]
  for (const [scheme, token] of tokens) {
    add(`auth ${scheme} with ${JSON.stringify(token)}`, () => [r.auth(scheme, token), r.whoAmI()])
  }
  add('auth accumulates and repeats', () => [
    r.auth('digest', 'a:1'),
    r.auth('digest', 'b:2'),
    r.auth('digest', 'a:1'),
    r.whoAmI(),
  ])
  add('the super user passes every ACL', (root) => [
    r.auth('digest', 'bob:pw', 'owner'),
    r.create(`${root}/n`, 'x', 0, 'owner', [acl(31, 'digest', bob)]),
    r.get(`${root}/n`),
    r.auth('digest', 'super:secret'),
    r.get(`${root}/n`),
    r.set(`${root}/n`),
    r.getAcl(`${root}/n`),
    r.create(`${root}/n/c`),
    r.del(`${root}/n/c`),
    r.setAcl(`${root}/n`, [acl(31, 'auth', '')]),
    r.getAcl(`${root}/n`),
    r.getAcl('/zookeeper/config'),
    r.set('/zookeeper/config', ''),
  ])
  add('getACL masks digests without ADMIN', (root) => [
    r.auth('digest', 'bob:pw', 'owner'),
    r.create(`${root}/n`, '', 0, 'owner', [
      acl(1),
      acl(31, 'digest', bob),
      acl(2, 'digest', 'x:y'),
      acl(2, 'ip', '1.2.3.4'),
    ]),
    r.getAcl(`${root}/n`),
    r.getAcl(`${root}/n`, 'owner'),
  ])
  add('ephemeral nodes need no permission to go with their session', (root) => [
    r.auth('digest', 'bob:pw', 'owner'),
    r.create(`${root}/p`),
    r.create(`${root}/p/e`, '', 1, 'b'),
    r.setAcl(`${root}/p`, [acl(31, 'digest', bob)], -1, 'owner'),
    r.del(`${root}/p/e`, -1, 'b'),
    r.close('b'),
    r.list(`${root}/p`, false, 'owner'),
  ])
}

import { OPEN_ACL_UNSAFE, OpCode, Perms, writeCreateRequest } from '@zabra/protocol'
import { expect, it } from 'vitest'
import type { Member } from '../../../ensemble/member.ts'
import { TestServer, type RawClient } from '../../../testing/test-server.ts'
import type { TreeFindings } from './tree-findings.ts'

const findings = async (server: TestServer): Promise<TreeFindings> =>
  JSON.parse((await server.http.request('/api/v1/findings')).text) as TreeFindings

const anyone = (perms: number) => [{ perms, id: { scheme: 'world', id: 'anyone' } }]

function createWith(client: RawClient, xid: number, path: string, acl: typeof OPEN_ACL_UNSAFE): void {
  const data = new TextEncoder().encode('hidden')
  client.ask(xid, OpCode.create, (w) => writeCreateRequest(w, { path, data, acl, flags: 0 }))
}

it('a walk finds the largest nodes, and nothing unwise in a sound tree', async () => {
  const { fixture, client } = await TestServer.withClient()
  client.create(1, '/large', 0, 'x'.repeat(1000))
  client.create(2, '/large/a')
  client.create(3, '/large/b')
  client.create(4, '/large/c')
  client.create(5, '/password')
  await fixture.untilIdle()
  expect(await findings(fixture)).toEqual({
    nodes: 9,
    largestNode: { path: '/large', bytes: 1000 },
    mostChildren: { path: '/', children: 3 },
    sequences: { count: 0, first: [] },
    quotas: { count: 0, first: [] },
    openSecrets: { count: 0, first: [] },
    rootPermissions: 'cdrwa',
    ephemerals: [],
  })
  await fixture.stop()
})

it('a walk finds open nodes with the names of secrets, by what anyone may do, and shows no data', async () => {
  const { fixture, client } = await TestServer.withClient()
  createWith(client, 1, '/db-password', OPEN_ACL_UNSAFE)
  createWith(client, 2, '/apiKey', anyone(Perms.WRITE))
  createWith(client, 3, '/secret', anyone(Perms.DELETE))
  createWith(client, 4, '/tokenizer', OPEN_ACL_UNSAFE)
  await fixture.untilIdle()
  const found = await findings(fixture)
  expect(found.openSecrets).toEqual({
    count: 2,
    first: [
      { path: '/db-password', anyone: 'reads' },
      { path: '/apiKey', anyone: 'changes' },
    ],
  })
  expect(JSON.stringify(found)).not.toContain('hidden')
  await fixture.stop()
})

it('a walk finds counters and quotas of which 80 % are used', async () => {
  const { fixture, client } = await TestServer.withClient()
  client.create(1, '/queue')
  client.create(2, '/quota')
  client.create(3, '/zookeeper/quota/quota')
  client.create(4, '/zookeeper/quota/quota/zookeeper_limits', 0, 'count=5,bytes=-1')
  client.create(5, '/zookeeper/quota/quota/zookeeper_stats', 0, 'count=1,bytes=0')
  for (const xid of [6, 7, 8]) client.create(xid, `/quota/${xid}`)
  await fixture.untilIdle()
  const { tree } = (fixture.server as Member).service!
  const node = tree.find('/queue')
  tree.store.columns(node).cversion[tree.store.slot(node)] = 0.81 * 2 ** 31
  const { sequences, quotas } = await findings(fixture)
  expect(sequences).toEqual({ count: 1, first: [{ path: '/queue', counter: 1739461754 }] })
  expect(quotas).toEqual({ count: 1, first: [{ path: '/quota', what: 'nodes', limit: 5, use: 4 }] })
  tree.store.columns(node).cversion[tree.store.slot(node)] = 0
  await fixture.stop()
})

it('a walk finds the sessions with most ephemeral nodes, and counts examples beyond those that it lists', async () => {
  const { fixture, client } = await TestServer.withClient()
  for (let i = 0; i < 250; i++) client.create(i + 1, `/e${1000 + i}`, 1)
  for (let i = 0; i < 12; i++) client.create(300 + i, `/secret${i}-password`, 0, 'x')
  await fixture.untilIdle()
  const [first, second] = await Promise.all([findings(fixture), findings(fixture)])
  expect(second).toEqual(first)
  expect(first.ephemerals).toEqual([
    { session: expect.stringMatching(/^0x/) as unknown, nodes: 250, bytes: 250 * (4 + 6) },
  ])
  expect(first.openSecrets.count).toBe(12)
  expect(first.openSecrets.first.length).toBe(10)
  await fixture.stop()
})

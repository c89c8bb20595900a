import { expect, it } from 'vitest'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { expectSameTrees } from './ensemble/same-trees.ts'
import { freePort } from './harness/ports.ts'
import { describeWith } from './harness/requirements.ts'
import { bytes } from './harness/bytes.ts'
import { reference, type Kind } from './harness/servers.ts'

const RECONFIG = 16

let ensemble: Ensemble

/** Sends a reconfig to a member. Returns the error code, or 'lost' when the connection closed before the reply. */
async function reconfigure(
  at: number,
  joining: string | null,
  leaving: string | null,
): Promise<number | 'lost'> {
  const client = await ensemble.connect(at)
  try {
    const body = bytes().str(joining).str(leaving).str(null).long(-1n).done()
    return (await client.request(RECONFIG, body)).err
  } catch {
    return 'lost'
  } finally {
    client.drop()
  }
}

/** Returns the member ids in a server's configuration node. */
async function membersAt(id: number): Promise<string> {
  const text = await ensemble.withClient(id, async (client) =>
    String((await client.get('/zookeeper/config')).data),
  )
  return [...text.matchAll(/server\.(\d+)=/g)]
    .map((match) => Number(match[1]))
    .sort((a, b) => a - b)
    .join()
}

/** Waits until all running members serve, have this configuration, and accept a write. */
async function waitForMembers(members: string): Promise<void> {
  await ensemble.leader()
  for (const id of ensemble.running)
    await until(`${members} at ${id}`, async () => (await membersAt(id).catch(() => '')) === members)
  await until('a write', () =>
    ensemble
      .withClient(1, (client) => client.set('/n', members))
      .then(
        () => true,
        () => false,
      ),
  )
}

describeWith(['apache'], 'reconfig of an ensemble of Zabra and Apache ZooKeeper', () => {
  it.each<readonly Kind[]>([
    ['zabra', reference, 'zabra', reference],
    [reference, 'zabra', reference, 'zabra'],
  ])('removes and adds members of %s, %s, %s and %s, the leader among them', async (...kinds) => {
    ensemble = await Ensemble.start({
      kinds,
      config: { reconfigEnabled: 'true', skipACL: 'yes' },
    })
    await ensemble.withClient(1, (client) => client.create('/n'))
    await waitForMembers('1,2,3,4')
    const first = await ensemble.leader()
    const follower = ensemble.ids.find((id) => id !== first)!
    expect(await reconfigure(follower, null, String(follower))).toBe(0)
    const left = ensemble.ids.filter((id) => id !== follower)
    await waitForMembers(left.join())

    await reconfigure(
      left.find((id) => id !== first)!,
      null,
      String(first),
    )
    await waitForMembers(left.filter((id) => id !== first).join())
    const second = await ensemble.leader()
    expect([first, follower]).not.toContain(second)

    // Both rejoin: one by a request to the leader, one by a request to a follower.
    const line = (id: number): string =>
      `server.${id}=127.0.0.1:${ensemble.portsOf(id).join(':')}:participant;127.0.0.1:${ensemble.member(id).port}`
    await until('the first to rejoin', async () => (await reconfigure(second, line(first), null)) === 0)
    await until('the second to rejoin', async () => (await reconfigure(first, line(follower), null)) === 0)
    await waitForMembers('1,2,3,4')
    const dumps = await ensemble.dumps()
    for (const [id, dump] of dumps) expect(dump, `the tree of ${id}`).toEqual(dumps.get(1))
  })
})

describeWith(['apache'], 'the HTTP port of Zabra beside Apache ZooKeeper', () => {
  it('hands leadership over to a server of Apache ZooKeeper, and changes members under it', async () => {
    const adminPorts = await Promise.all([1, 2, 3].map(freePort))
    ensemble = await Ensemble.start({
      kinds: ['zabra', reference, 'zabra'],
      config: { reconfigEnabled: 'true' },
      configOf: (id, kind) =>
        kind === 'zabra'
          ? {
              'admin.enableServer': 'true',
              'admin.serverAddress': '127.0.0.1',
              'admin.serverPort': adminPorts[id - 1]!,
              'admin.role.admin': 'ip:127.0.0.1',
            }
          : {},
    })
    const ask = async (id: number, method: string, path: string, body: object) => {
      const url = `http://127.0.0.1:${adminPorts[id - 1]}/api/v1/${path}`
      const response = await fetch(url, { method, body: JSON.stringify(body) })
      return { status: response.status, answer: (await response.json()) as object }
    }
    let leader = await ensemble.leader()
    for (; leader === 2; leader = await ensemble.leader()) {
      await ensemble.kill(2)
      await ensemble.leader()
      await ensemble.start(2)
    }
    await ensemble.withClient(1, (client) => client.create('/n'))
    // On a busy machine another one may be elected before the chosen one has left its role.
    for (; leader !== 2; leader = await ensemble.leader()) {
      const { status, answer } = await ask(leader, 'POST', 'leader/transfer', { to: 2 })
      expect([status, answer]).toEqual(
        status === 200 ? [200, { from: leader, leader: 2 }] : [409, expect.objectContaining({ status: 409 })],
      )
    }
    expect(await ask(1, 'POST', 'leader/transfer', { to: 3 })).toMatchObject({
      status: 409,
      answer: { detail: expect.stringContaining('it runs Apache ZooKeeper') as unknown },
    })
    const ports = await Promise.all([1, 2, 3].map(freePort))
    const member = `4=127.0.0.1:${ports[0]}:${ports[1]}:observer;127.0.0.1:${ports[2]}`
    // On a busy machine it may take longer than the answer is waited for.
    const change = (id: number, text: string): Promise<void> =>
      until(text, async () => (await ask(id, 'POST', 'members', { member: text })).status === 200)
    await change(3, member)
    await waitForMembers('1,2,3,4')
    await change(1, member.replace('observer', 'participant'))
    await waitForMembers('1,2,3,4')
    const response = await fetch(`http://127.0.0.1:${adminPorts[2]}/api/v1/members`)
    expect(await response.json()).toMatchObject({ voters: [1, 2, 3, 4], quorum: 3 })
    await expectSameTrees(ensemble)
  })
})

import { afterEach, expect, it } from 'vitest'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { describeWith } from './harness/requirements.ts'
import { bytes } from './harness/bytes.ts'
import { reference, type Kind } from './harness/servers.ts'

const RECONFIG = 16

let ensemble: Ensemble | undefined
afterEach(async () => {
  await ensemble?.[Symbol.asyncDispose]()
  ensemble = undefined
})

/** Asks a member for a change; gives the error, or 'lost' when the connection went before the answer. */
async function reconfigure(at: number, joining: string | null, leaving: string | null): Promise<number | 'lost'> {
  const client = await ensemble!.connect(at)
  try {
    const body = bytes().str(joining).str(leaving).str(null).long(-1n).done()
    return (await client.request(RECONFIG, body)).err
  } catch {
    return 'lost'
  } finally {
    client.drop()
  }
}

/** Members in the configuration that a server shows. */
async function membersAt(id: number): Promise<string> {
  const text = await ensemble!.withClient(id, async (client) =>
    String((await client.get('/zookeeper/config')).data),
  )
  return [...text.matchAll(/server\.(\d+)=/g)]
    .map((match) => Number(match[1]))
    .sort((a, b) => a - b)
    .join()
}

/** Everybody serves and shows these members; one write goes through. */
async function waitForMembers(members: string): Promise<void> {
  await ensemble!.leader()
  for (const id of ensemble!.running)
    await until(`${members} at ${id}`, async () => (await membersAt(id).catch(() => '')) === members)
  await until('a write', () =>
    ensemble!
      .withClient(1, (client) => client.set('/n', members))
      .then(
        () => true,
        () => false,
      ),
  )
}

describeWith(['apache'], 'an ensemble of both that changes', () => {
  it.each<readonly Kind[]>([
    ['zabra', reference, 'zabra', reference],
    [reference, 'zabra', reference, 'zabra'],
  ])('from %s, %s, %s and %s, its leader among those that go and come', async (...kinds) => {
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

    // Both come back: one asked for at the leader, one at a follower.
    const line = (id: number): string =>
      `server.${id}=127.0.0.1:${ensemble!.portsOf(id).join(':')}:participant;127.0.0.1:${ensemble!.member(id).port}`
    await until('the return of one', async () => (await reconfigure(second, line(first), null)) === 0)
    await until('the return of the other', async () => (await reconfigure(first, line(follower), null)) === 0)
    await waitForMembers('1,2,3,4')
    const dumps = await ensemble.dumps()
    for (const [id, dump] of dumps) expect(dump, `the tree of ${id}`).toEqual(dumps.get(1))
  })
})

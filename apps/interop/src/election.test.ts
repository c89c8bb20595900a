import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { ElectionParticipant } from './election/participant.ts'
import { describeWith } from './harness/requirements.ts'
import { fourLetterWord } from './harness/client.ts'
import { freePort } from './harness/ports.ts'
import { reference, scratch, Server, type Kind } from './harness/servers.ts'

const kinds: readonly Kind[] = process.env['ZABRA_APACHE_39'] ? [reference, 'apache-3.9'] : [reference]

/** The ids 1 to 3 on free ports. */
interface Ensemble {
  readonly lines: Record<string, string>
  readonly configuration: string
  readonly quorumPorts: readonly number[]
  readonly electionPorts: readonly number[]
}

async function ensemble(): Promise<Ensemble> {
  const all = await Promise.all(Array.from({ length: 6 }, () => freePort()))
  const lines = Object.fromEntries(
    [1, 2, 3].map((id) => [`server.${id}`, `127.0.0.1:${all[id - 1]}:${all[id + 2]}`]),
  )
  const configuration = Object.entries(lines)
    .map(([key, value]) => `${key}=${value}`)
    .join('\n')
  return { lines, configuration, quorumPorts: all.slice(0, 3), electionPorts: all.slice(3) }
}

const cleanUps: (() => Promise<void>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** Starts an Apache server; resolves when it serves, which takes a leader. */
async function apache(kind: Kind, { lines }: Ensemble, id: number): Promise<Server> {
  const dataDir = join(scratch('election'), 'data')
  mkdirSync(dataDir)
  writeFileSync(join(dataDir, 'myid'), String(id))
  const config = { ...lines, tickTime: 500, initLimit: 60, syncLimit: 10, 'admin.enableServer': 'false' }
  const server = await Server.start({ kind, dataDir, config })
  cleanUps.push(() => server.kill())
  return server
}

async function startParticipant(
  id: number,
  { configuration, electionPorts }: Ensemble,
  port?: number,
): Promise<ElectionParticipant> {
  const started = await ElectionParticipant.start(id, configuration, port ?? electionPorts[id - 1]!)
  cleanUps.push(() => started[Symbol.asyncDispose]())
  return started
}

const modeOf = async (server: Server): Promise<string | undefined> =>
  /Mode: (\w+)/.exec(await fourLetterWord(server.port, 'srvr', { timeoutMs: 2000 }))?.[1]

/** Stands where a leader takes its followers; resolves with their ids once so many have come with their first packet. */
function acceptFollowers(port: number, count: number): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const ids = new Set<number>()
    const listener = createServer((socket) => {
      socket.on('error', () => socket.destroy())
      socket.once('data', (packet: Buffer) => {
        // FOLLOWERINFO: type, zxid, and behind the length of the data the id.
        if (packet.readInt32BE(0) === 11) ids.add(Number(packet.readBigInt64BE(16)))
        socket.destroy()
        if (ids.size === count) resolve([...ids].sort((a, b) => a - b))
      })
    })
    listener.once('error', reject)
    listener.listen(port, '127.0.0.1')
    cleanUps.push(() => new Promise((closed) => listener.close(() => closed())))
  })
}

describeWith(['apache'], 'an election', () => {
  it.each(kinds)('among two servers of %s and ours has an outcome that all agree on', async (kind) => {
    const members = await ensemble()
    const ours = await startParticipant(1, members)
    const decided = ours.elect(0, 0)
    const [two, three] = await Promise.all([apache(kind, members, 2), apache(kind, members, 3)])
    const modes = [await modeOf(two), await modeOf(three)]
    expect(new Set(modes)).toEqual(new Set(['follower', 'leader']))
    const leads = modes[1] === 'leader' ? 3 : 2
    const first = await decided
    // One of them may have come late, when ours and the other had made up their minds; ours finds nobody there and looks again.
    const { state, vote } = first.vote.leader === leads ? first : await ours.elect(0, 0)
    expect([state, vote.leader]).toEqual(['following', leads])

    // The leader dies: the vote of ours makes the other one lead, and whoever asks hears it from both.
    const [dead, left, alive] = vote.leader === 3 ? [three, 2, two] : [two, 3, three]
    await dead.kill()
    const again = await ours.elect(0, 1)
    expect([again.state, again.vote.leader]).toEqual(['following', left])
    expect(again.vote.round).toBeGreaterThan(vote.round)
    const stranger = await startParticipant(9, members, await freePort())
    expect(await stranger.elect(0, 0)).toMatchObject({ state: 'following', vote: { leader: left } })
    expect(alive.isRunning).toBe(true)

    // The old leader is back: with a quorum of their own the two serve, and ours joins whoever leads.
    await dead.start()
    const joined = await ours.elect(0, 1)
    const leadsNow = (await modeOf(alive)) === 'leader' ? left : vote.leader
    expect([joined.state, joined.vote.leader]).toEqual(['following', leadsNow])
  })

  it.each(kinds)(
    'is won by ours when it has more than two servers of %s, who come to follow it',
    async (kind) => {
      const members = await ensemble()
      const came = acceptFollowers(members.quorumPorts[0]!, 2)
      const ours = await startParticipant(1, members)
      const decided = ours.elect(0x100000007, 1)
      // They never get to serve: ours has no more to offer than its election.
      const starting = Promise.allSettled([apache(kind, members, 2), apache(kind, members, 3)])
      expect(await decided).toMatchObject({
        state: 'leading',
        vote: { leader: 1, zxid: 0x100000007, epoch: 1 },
      })
      expect(await came).toEqual([2, 3])
      void starting
    },
  )
})

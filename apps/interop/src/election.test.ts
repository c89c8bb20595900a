import { mkdirSync, writeFileSync } from 'node:fs'
import { createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { ElectionParticipant } from './election/participant.ts'
import { describeWith, missingRequirements } from './harness/requirements.ts'
import { fourLetterWord } from './harness/client.ts'
import { freePort } from './harness/ports.ts'
import { reference, scratch, Server, type Kind } from './harness/servers.ts'

const kinds: readonly Kind[] =
  missingRequirements('newestApache') === undefined ? [reference, 'apache-3.9'] : [reference]

/** The servers 1 to 3 on free ports. */
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

/** Starts an Apache server. Resolves when it serves, which requires a leader. */
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

/**
 * Listens on a quorum port. Resolves to the ids of the followers once `count` of them have sent FOLLOWERINFO. Connections stay
 * open until the end of the test: a follower whose connection breaks votes again, and two of them could elect another leader.
 */
function acceptFollowers(port: number, count: number): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const ids = new Set<number>()
    const sockets = new Set<Socket>()
    const listener = createServer((socket) => {
      sockets.add(socket)
      socket.on('error', () => socket.destroy())
      socket.once('data', (packet: Buffer) => {
        // FOLLOWERINFO: type, zxid, data length, then the id.
        if (packet.readInt32BE(0) === 11) ids.add(Number(packet.readBigInt64BE(16)))
        if (ids.size === count) resolve([...ids].sort((a, b) => a - b))
      })
    })
    listener.once('error', reject)
    listener.listen(port, '127.0.0.1')
    cleanUps.push(() => {
      for (const socket of sockets) socket.destroy()
      return new Promise((closed) => listener.close(() => closed()))
    })
  })
}

describeWith(['apache'], 'an election between Apache ZooKeeper and Zabra', () => {
  it.each(kinds)('two servers of %s and one of Zabra agree on the leader', async (kind) => {
    const members = await ensemble()
    const zabra = await startParticipant(1, members)
    const decided = zabra.elect(0, 0)
    const [two, three] = await Promise.all([apache(kind, members, 2), apache(kind, members, 3)])
    const modes = [await modeOf(two), await modeOf(three)]
    expect(new Set(modes)).toEqual(new Set(['follower', 'leader']))
    const leads = modes[1] === 'leader' ? 3 : 2
    const first = await decided
    // One server may have started after the other two had decided; then Zabra finds no leader there and votes again.
    const { state, vote } = first.vote.leader === leads ? first : await zabra.elect(0, 0)
    expect([state, vote.leader]).toEqual(['following', leads])

    // The leader is killed: with Zabra's vote the other server leads, and a third party learns it from both.
    const [dead, left, alive] = vote.leader === 3 ? [three, 2, two] : [two, 3, three]
    await dead.kill()
    const again = await zabra.elect(0, 1)
    expect([again.state, again.vote.leader]).toEqual(['following', left])
    expect(again.vote.round).toBeGreaterThan(vote.round)
    const outsider = await startParticipant(9, members, await freePort())
    expect(await outsider.elect(0, 0)).toMatchObject({ state: 'following', vote: { leader: left } })
    expect(alive.isRunning).toBe(true)

    // The old leader restarts: the two Apache servers form a quorum, and Zabra follows their leader.
    await dead.start()
    const joined = await zabra.elect(0, 1)
    const leadsNow = (await modeOf(alive)) === 'leader' ? left : vote.leader
    expect([joined.state, joined.vote.leader]).toEqual(['following', leadsNow])
  })

  it.each(kinds)(
    'Zabra with the newest data is elected, and two servers of %s connect to it as followers',
    async (kind) => {
      const members = await ensemble()
      const connected = acceptFollowers(members.quorumPorts[0]!, 2)
      const zabra = await startParticipant(1, members)
      const decided = zabra.elect(0x100000007, 1)
      // They never serve: this participant takes part in elections only.
      const starting = Promise.allSettled([apache(kind, members, 2), apache(kind, members, 3)])
      expect(await decided).toMatchObject({
        state: 'leading',
        vote: { leader: 1, zxid: 0x100000007, epoch: 1 },
      })
      expect(await connected).toEqual([2, 3])
      void starting
    },
  )
})

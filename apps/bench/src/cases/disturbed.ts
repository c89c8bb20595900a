import { connect, type Client } from '@zabra/client'
import { nodePlatform } from '@zabra/runtime/node'
import { fourLetterWord, type Peer } from '../peers.ts'
import { load } from '../load.ts'
import { withPeer, type Case, type CaseContext } from './case.ts'

const PROBE_SECONDS = 6
const EPHEMERALS = 100_000
const NODES = 300_000

/** Returns the longest latency, in milliseconds, of 1,000 reads per second during a disturbance. */
async function longestWait(peer: Peer, disturbance: () => Promise<unknown>): Promise<number> {
  const probe = load(
    peer.servers,
    '-m',
    'get',
    '-c',
    '1',
    '-d',
    '64',
    '-r',
    '1000',
    '-s',
    String(PROBE_SECONDS),
  )
  // The first quarter of the probe is its warm-up.
  await new Promise((resolve) => setTimeout(resolve, PROBE_SECONDS * 400))
  await disturbance()
  const [result] = await probe
  return result!.max / 1000
}

const standstill: Case = {
  name: 'standstill',
  about: 'the longest latency of a reader during large operations of the server',
  run: async (context) => {
    const { note, options } = context
    const count = (full: number): string => String(Math.max(10, Math.round(full * options.scale)))
    const figure = (what: string) =>
      ({ name: `longest wait during ${what}`, unit: 'ms', better: 'lower' }) as const
    await withPeer(context, 1, async (peer) => {
      note(figure('nothing'), await longestWait(peer, async () => {}))
      await load(peer.servers, '-m', 'get', '-c', '1', '-d', '1', '-s', '1', '-k', count(NODES), '--keep')
      const classic = ['-m', 'classic', '-c', '10', '-d', '100', '-n', String(Number(count(EPHEMERALS)) / 10)]
      const many = `creations, deletions and ends of sessions with ${count(EPHEMERALS)} ephemerals`
      note(figure(many), await longestWait(peer, () => load(peer.servers, ...classic)))
      note(
        figure('a dump of all sessions'),
        await longestWait(peer, () => fourLetterWord(peer.ports[0]!, 'dump')),
      )
      const storm = ['-m', 'connect', '-c', count(5000), '-d', '500']
      note(figure(`${count(5000)} new sessions`), await longestWait(peer, () => load(peer.servers, ...storm)))
    })
  },
}

const failOver: Case = {
  name: 'fail-over',
  about:
    'from the death of the leader of three until the next write is acknowledged to a client of a follower',
  run: async (context: CaseContext) =>
    withPeer(context, 3, async (peer) => {
      const servers = peer.ports.slice(1).map((port) => `127.0.0.1:${port}`)
      // Without the random backoff of the client, so that only the servers are measured.
      const platform = { clock: nodePlatform().clock, random: { bytes: zeros, below: () => 0 } }
      const client = await connect({ servers, sessionTimeoutMs: 20_000, platform })
      try {
        await client.create('/fail-over')
        peer.killLeader()
        const began = performance.now()
        while (!(await tryWrite(client)))
          if (performance.now() - began > 60_000) throw new Error('No write was acknowledged for a minute')
        const waited = performance.now() - began
        const name = 'leader killed until the next acknowledged write'
        context.note({ name, unit: 'ms', better: 'lower', aim: 1 / 3 }, waited)
      } finally {
        await client.close()
      }
    }),
}

const zeros = (count: number): Uint8Array => new Uint8Array(count)

/** Tries a write. Returns whether it was acknowledged. */
async function tryWrite(client: Client): Promise<boolean> {
  try {
    await client.setData('/fail-over', new Uint8Array(1), { retry: false, timeoutMs: 1000 })
    return true
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 1))
    return false
  }
}

export const disturbedCases: readonly Case[] = [standstill, failOver]

import { connect, type Client } from '@zabra/client'
import { nodePlatform } from '@zabra/runtime/node'
import { fourLetterWord, type Peer } from '../peers.ts'
import { load } from '../load.ts'
import { withPeer, type Case, type CaseContext } from './case.ts'

const PROBE_SECONDS = 6
const EPHEMERALS = 100_000
const NODES = 300_000

/** The longest wait of a client that reads a thousand times a second while something large happens. */
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
  // The first quarter is its warm-up.
  await new Promise((resolve) => setTimeout(resolve, PROBE_SECONDS * 400))
  await disturbance()
  const [told] = await probe
  return told!.max / 1000
}

const standstill: Case = {
  name: 'standstill',
  about: 'the longest wait of a reader while the server does something large',
  run: async (setting) => {
    const { note, options: choices } = setting
    const count = (full: number): string => String(Math.max(10, Math.round(full * choices.scale)))
    const figure = (what: string) =>
      ({ name: `longest wait during ${what}`, unit: 'ms', better: 'lower' }) as const
    await withPeer(setting, 1, async (peer) => {
      note(figure('nothing'), await longestWait(peer, async () => {}))
      await load(peer.servers, '-m', 'get', '-c', '1', '-d', '1', '-s', '1', '-k', count(NODES), '--keep')
      const classic = ['-m', 'classic', '-c', '10', '-d', '100', '-n', String(Number(count(EPHEMERALS)) / 10)]
      const many = `creations, deletions and ends of sessions with ${count(EPHEMERALS)} ephemerals`
      note(figure(many), await longestWait(peer, () => load(peer.servers, ...classic)))
      note(figure('a dump of all sessions'), await longestWait(peer, () => fourLetterWord(peer.ports[0]!, 'dump')))
      const storm = ['-m', 'connect', '-c', count(5000), '-d', '500']
      note(figure(`${count(5000)} new sessions`), await longestWait(peer, () => load(peer.servers, ...storm)))
    })
  },
}

const failOver: Case = {
  name: 'fail-over',
  about:
    'from the death of the leader of three until the next write is acknowledged to a client of a follower',
  run: async (setting: CaseContext) =>
    withPeer(setting, 3, async (peer) => {
      const servers = peer.ports.slice(1).map((port) => `127.0.0.1:${port}`)
      // Without the chance by which clients keep apart, so that the servers are measured.
      const ports = { clock: nodePlatform().clock, random: { bytes: zeros, below: () => 0 } }
      const client = await connect({ servers, sessionTimeout: 20_000, platform: ports })
      try {
        await client.create('/fail-over')
        peer.killLeader()
        const began = performance.now()
        while (!(await tryWrite(client)))
          if (performance.now() - began > 60_000) throw new Error('Nothing was written for a minute')
        const waited = performance.now() - began
        const name = 'leader killed until the next acknowledged write'
        setting.note({ name, unit: 'ms', better: 'lower', aim: 1 / 3 }, waited)
      } finally {
        await client.close()
      }
    }),
}

const zeros = (count: number): Uint8Array => new Uint8Array(count)

/** Tries a write; whatever becomes of one that fails does not matter here. */
async function tryWrite(client: Client): Promise<boolean> {
  try {
    await client.setData('/fail-over', new Uint8Array(1), { retry: false, timeout: 1000 })
    return true
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 1))
    return false
  }
}

export const disturbedCases: readonly Case[] = [standstill, failOver]

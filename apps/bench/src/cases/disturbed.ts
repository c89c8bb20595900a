import { fourLetterWord, type Peer } from '../peers.ts'
import { load } from '../load.ts'
import { on, type Case, type Setting } from './case.ts'

const PROBE_SECONDS = 6
const EPHEMERALS = 100_000
const NODES = 300_000

/** The longest wait of a client that reads a thousand times a second while something large happens. */
async function worst(peer: Peer, disturbance: () => Promise<unknown>): Promise<number> {
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
    const { note, choices } = setting
    const count = (full: number): string => String(Math.max(10, Math.round(full * choices.scale)))
    const figure = (what: string) =>
      ({ name: `longest wait during ${what}`, unit: 'ms', better: 'lower' }) as const
    await on(setting, 1, async (peer) => {
      note(figure('nothing'), await worst(peer, async () => {}))
      await load(peer.servers, '-m', 'get', '-c', '1', '-d', '1', '-s', '1', '-k', count(NODES), '--keep')
      const classic = ['-m', 'classic', '-c', '10', '-d', '100', '-n', String(Number(count(EPHEMERALS)) / 10)]
      const many = `creations, deletions and ends of sessions with ${count(EPHEMERALS)} ephemerals`
      note(figure(many), await worst(peer, () => load(peer.servers, ...classic)))
      note(figure('a dump of all sessions'), await worst(peer, () => fourLetterWord(peer.ports[0]!, 'dump')))
      const storm = ['-m', 'connect', '-c', count(5000), '-d', '500']
      note(figure(`${count(5000)} new sessions`), await worst(peer, () => load(peer.servers, ...storm)))
    })
  },
}

const failOver: Case = {
  name: 'fail-over',
  about: 'from the death of the leader of three until a new session writes',
  run: async (setting: Setting) =>
    on(setting, 3, async (peer) => {
      await load(peer.servers, '-m', 'set', '-c', '3', '-d', '1', '-s', '1')
      const began = performance.now()
      peer.killLeader()
      const followers = peer.ports.slice(1)
      const servers = followers.map((port) => `127.0.0.1:${port}`).join(',')
      for (;;) {
        const modes = await Promise.all(followers.map((port) => fourLetterWord(port, 'srvr').catch(() => '')))
        if (modes.some((text) => text.includes('Mode: leader'))) break
        if (performance.now() - began > 60_000) throw new Error('Nobody leads a minute after the leader died')
        await new Promise((resolve) => setTimeout(resolve, 5))
      }
      setting.note(
        { name: 'leader killed until another leads', unit: 'ms', better: 'lower', aim: 1 / 3 },
        performance.now() - began,
      )
      await load(servers, '-m', 'set', '-c', '2', '-d', '1', '-s', '1')
    }),
}

export const disturbedCases: readonly Case[] = [standstill, failOver]

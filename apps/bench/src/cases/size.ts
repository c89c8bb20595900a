import { holdSessions, load } from '../load.ts'
import { withPeer, createNodes, scaled, loadArgs, type Case } from './case.ts'

const NODES = 1_000_000
const RESTART_NODES = 547_000
const SESSIONS = 10_000
const WATCHES = 100_000
const IDLE_SECONDS = 10

const nodeMemory: Case = {
  name: 'memory-nodes',
  about: 'resident memory per znode of 100 bytes, of a million; for Java that includes garbage',
  run: async (context) => {
    const nodes = scaled(context, NODES)
    await withPeer(context, 1, async (peer) => {
      const before = peer.residentBytes()
      await createNodes(peer.servers, nodes, 100)
      const each = (peer.residentBytes() - before) / nodes
      context.note({ name: 'resident memory a znode', unit: 'bytes', better: 'lower', aim: 0.7 }, each)
    })
  },
}

const sessionCosts: Case = {
  name: 'idle-sessions',
  about: 'memory and processor time of 10,000 idle sessions and 100,000 watches',
  run: async (context) => {
    const sessions = scaled(context, SESSIONS)
    const watches = Math.round(scaled(context, WATCHES) / sessions)
    const { note } = context
    await withPeer(context, 1, async (peer) => {
      let before = peer.residentBytes()
      const grown = (): number => {
        const now = peer.residentBytes()
        const growth = now - before
        before = now
        return growth
      }
      await holdSessions(
        peer.servers,
        { sessions, watches },
        {
          sessionsOpen: async () => {
            note({ name: 'memory a session', unit: 'bytes', better: 'lower', aim: 0.5 }, grown() / sessions)
            const cpu = peer.cpuSeconds()
            await new Promise((resolve) => setTimeout(resolve, IDLE_SECONDS * 1000))
            const share = ((peer.cpuSeconds() - cpu) / IDLE_SECONDS) * 100
            const name = `processor of ${sessions.toLocaleString('en')} idle sessions`
            note({ name, unit: '% of a core', better: 'lower', aim: 0.5 }, share)
            grown()
          },
          watchesSet: () =>
            note({ name: 'memory a watch', unit: 'bytes', better: 'lower' }, grown() / (watches * sessions)),
        },
      )
    })
  },
}

const starts: Case = {
  name: 'start',
  about: 'time from the start of a process until it serves, empty and with 547,000 znodes',
  run: async (context) => {
    const nodes = scaled(context, RESTART_NODES)
    const { note, start } = context
    const peer = await start()
    note({ name: 'start to serving, empty', unit: 'ms', better: 'lower', aim: 0.5 }, peer.startMs)
    await createNodes(peer.servers, nodes, 100)
    await peer.stop({ keep: true })
    const again = await start({ folder: peer.folder })
    const name = `start to serving, ${nodes.toLocaleString('en')} znodes`
    note({ name, unit: 'ms', better: 'lower', aim: 0.7 }, again.startMs)
    await again.stop()
  },
}

const fanOut: Case = {
  name: 'fan-out',
  about: 'time from a write until the last of 10,000 watchers on one node is notified',
  run: async (context) => {
    const watchers = scaled(context, SESSIONS)
    await withPeer(context, 1, async (peer) => {
      const { seconds, processes } = context.options
      const args = ['-m', 'watch', '-c', watchers + 1, '-s', seconds, '-p', processes].map(String)
      const [result] = await load(peer.servers, ...args)
      const name = `${watchers.toLocaleString('en')} watchers notified, p50`
      context.note({ name, unit: 'ms', better: 'lower', aim: 0.3 }, result!.p50 / 1000)
    })
  },
}

const growth: Case = {
  name: 'growth',
  about: 'processor time per request with 1,000 and 1,000,000 znodes, and with 10 and 10,000 other sessions',
  run: async (context) => {
    const { note, options } = context
    await withPeer(context, 1, async (peer) => {
      const cost = async (what: string): Promise<void> => {
        for (const work of ['get', 'set']) {
          const before = peer.cpuSeconds()
          const [result] = await load(peer.servers, '-m', work, ...loadArgs(options))
          const each = ((peer.cpuSeconds() - before) * 1e6) / (result!.operations * 1.25)
          note({ name: `${work} server CPU with ${what}`, unit: 'µs/op', better: 'lower' }, each)
        }
      }
      await createNodes(peer.servers, 1000, 100)
      await cost('1,000 znodes')
      await createNodes(peer.servers, scaled(context, NODES), 100)
      await cost(`${scaled(context, NODES).toLocaleString('en')} znodes`)
      const sessions = scaled(context, SESSIONS)
      const held = {
        sessionsOpen: () => cost(`${sessions.toLocaleString('en')} sessions too`),
        watchesSet() {},
      }
      await holdSessions(peer.servers, { sessions }, held)
    })
  },
}

export const sizeCases: readonly Case[] = [nodeMemory, sessionCosts, starts, fanOut, growth]

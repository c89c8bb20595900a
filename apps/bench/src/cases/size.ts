import { holdSessions, load } from '../load.ts'
import { withPeer, createNodes, scaled, loadArgs, type Case } from './case.ts'

const NODES = 1_000_000
const RESTART_NODES = 547_000
const SESSIONS = 10_000
const WATCHES = 100_000
const IDLE_SECONDS = 10

const nodeMemory: Case = {
  name: 'memory-nodes',
  about: 'what a znode of 100 bytes takes of resident memory, of a million; for Java that includes garbage',
  run: async (setting) => {
    const nodes = scaled(setting, NODES)
    await withPeer(setting, 1, async (peer) => {
      const before = peer.residentBytes()
      await createNodes(peer.servers, nodes, 100)
      const each = (peer.residentBytes() - before) / nodes
      setting.note({ name: 'resident memory a znode', unit: 'bytes', better: 'lower', aim: 0.7 }, each)
    })
  },
}

const sessionCosts: Case = {
  name: 'idle-sessions',
  about: 'what 10,000 sessions that only ping, and 100,000 watches, take of memory and processor',
  run: async (setting) => {
    const sessions = scaled(setting, SESSIONS)
    const watches = Math.round(scaled(setting, WATCHES) / sessions)
    const { note } = setting
    await withPeer(setting, 1, async (peer) => {
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
  about: 'from the start of a process until it serves, empty and with 547,000 znodes',
  run: async (setting) => {
    const nodes = scaled(setting, RESTART_NODES)
    const { note, start } = setting
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
  about: 'from a write until the last of 10,000 watchers on one node is told',
  run: async (setting) => {
    const watchers = scaled(setting, SESSIONS)
    await withPeer(setting, 1, async (peer) => {
      const { seconds, processes } = setting.options
      const args = ['-m', 'watch', '-c', watchers + 1, '-s', seconds, '-p', processes].map(String)
      const [told] = await load(peer.servers, ...args)
      const name = `${watchers.toLocaleString('en')} watchers told, p50`
      setting.note({ name, unit: 'ms', better: 'lower', aim: 0.3 }, told!.p50 / 1000)
    })
  },
}

const growth: Case = {
  name: 'growth',
  about:
    'what a request costs the processor with 1,000 and 1,000,000 znodes, and with 10 and 10,000 sessions beside it',
  run: async (setting) => {
    const { note, options: choices } = setting
    await withPeer(setting, 1, async (peer) => {
      const cost = async (what: string): Promise<void> => {
        for (const work of ['get', 'set']) {
          const before = peer.cpuSeconds()
          const [told] = await load(peer.servers, '-m', work, ...loadArgs(choices))
          const each = ((peer.cpuSeconds() - before) * 1e6) / (told!.operations * 1.25)
          note({ name: `${work} server CPU with ${what}`, unit: 'µs/op', better: 'lower' }, each)
        }
      }
      await createNodes(peer.servers, 1000, 100)
      await cost('1,000 znodes')
      await createNodes(peer.servers, scaled(setting, NODES), 100)
      await cost(`${scaled(setting, NODES).toLocaleString('en')} znodes`)
      const sessions = scaled(setting, SESSIONS)
      const held = {
        sessionsOpen: () => cost(`${sessions.toLocaleString('en')} sessions too`),
        watchesSet() {},
      }
      await holdSessions(peer.servers, { sessions }, held)
    })
  },
}

export const sizeCases: readonly Case[] = [nodeMemory, sessionCosts, starts, fanOut, growth]

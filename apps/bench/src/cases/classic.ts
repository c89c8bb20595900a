import { load } from '../load.ts'
import { withPeer, type Case } from './case.ts'

/** The load that ZooKeeper's own smoke test puts on an ensemble. */
export const classicCase: Case = {
  name: 'classic-3',
  about: '110,000 operations for each of 1, 10 and 20 clients on three servers',
  run: async (setting) => {
    const { options: choices, note } = setting
    const count = Math.max(100, Math.round(10_000 * choices.scale))
    for (const clients of [1, 10, 20])
      await withPeer(setting, 3, async (peer) => {
        const args = ['-m', 'classic', '-c', String(clients), '-d', '100', '-n', String(count)]
        const told = await load(peer.servers, ...args, '-p', String(Math.min(clients, choices.processes)))
        const all = told.find(({ name }) => name === 'all')!
        const name = `110,000 operations × ${clients}, 3 servers`
        note({ name, unit: 's', better: 'lower', aim: 1 / 3 }, all.seconds)
      })
  },
}

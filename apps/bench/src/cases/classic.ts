import { load } from '../load.ts'
import { withPeer, type Case } from './case.ts'

/** The load of ZooKeeper's own smoke test. */
export const classicCase: Case = {
  name: 'classic-3',
  about: '110,000 operations for each of 1, 10 and 20 clients on three servers',
  run: async (context) => {
    const { options, note } = context
    const count = Math.max(100, Math.round(10_000 * options.scale))
    for (const clients of [1, 10, 20])
      await withPeer(context, 3, async (peer) => {
        const args = ['-m', 'classic', '-c', String(clients), '-d', '100', '-n', String(count)]
        const results = await load(peer.servers, ...args, '-p', String(Math.min(clients, options.processes)))
        const all = results.find(({ name }) => name === 'all')!
        const name = `110,000 operations × ${clients}, 3 servers`
        note({ name, unit: 's', better: 'lower', aim: 1 / 3 }, all.seconds)
      })
  },
}

import { fourLetterWord } from '../harness/client.ts'
import { until, type Ensemble } from './ensemble.ts'

/** Returns the id of the server that an observer follows, from its `mntr`; not a number when it follows none. */
async function masterOf(ensemble: Ensemble, id: number): Promise<number> {
  const text = await fourLetterWord(ensemble.member(id).port, 'mntr', { timeoutMs: 2000 }).catch(() => '')
  return Number(/zk_observer_master_id\t(\d+)/.exec(text)?.[1])
}

/** Resolves when an observer follows this server. */
export const waitForMaster = (ensemble: Ensemble, id: number, master: number): Promise<void> =>
  until(`observer ${id} to follow ${master}`, async () => (await masterOf(ensemble, id)) === master, 60_000)

/** Resolves when an observer follows this server. One that did not reach its master within a tick follows the leader: it is restarted. */
export async function followMaster(ensemble: Ensemble, id: number, master: number): Promise<void> {
  for (;;) {
    await until(`observer ${id} to follow a member`, async () => (await masterOf(ensemble, id)) > 0, 60_000)
    if ((await masterOf(ensemble, id)) === master) return
    await ensemble.kill(id)
    await ensemble.start(id)
  }
}

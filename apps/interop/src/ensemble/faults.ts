import type { Prng } from '../harness/prng.ts'
import type { Ensemble } from './ensemble.ts'

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

/** Faults from which an ensemble must recover. Each resolves when the fault is over. */
export const faults = {
  async 'a member is killed'(ensemble: Ensemble, prng: Prng) {
    await killAndRestart(ensemble, anyMember(ensemble, prng), prng)
  },
  async 'the leader is killed'(ensemble: Ensemble, prng: Prng) {
    await killAndRestart(ensemble, await ensemble.leader(), prng)
  },
  async 'a member is paused'(ensemble: Ensemble, prng: Prng) {
    await pauseMember(ensemble, anyMember(ensemble, prng), prng)
  },
  async 'the leader is paused'(ensemble: Ensemble, prng: Prng) {
    await pauseMember(ensemble, await ensemble.leader(), prng)
  },
  async 'two members cannot reach each other'(ensemble: Ensemble, prng: Prng) {
    const first = anyMember(ensemble, prng)
    const others = ensemble.ids.filter((id) => id !== first)
    const heal = ensemble.partition(first, others[prng.int(others.length)]!)
    await pause(500 + prng.int(3000))
    heal()
  },
  async 'the leader is cut off'(ensemble: Ensemble, prng: Prng) {
    const heal = ensemble.isolate(await ensemble.leader())
    await pause(500 + prng.int(6000))
    heal()
  },
  async 'all members are killed'(ensemble: Ensemble) {
    await ensemble.kill(...ensemble.ids)
    await ensemble.start(...ensemble.ids)
  },
  async 'the leader is asked to stop'(ensemble: Ensemble) {
    const leader = await ensemble.leader()
    await ensemble.stop(leader)
    await ensemble.start(leader)
  },
} satisfies Record<string, (ensemble: Ensemble, prng: Prng) => Promise<void>>

export type Fault = keyof typeof faults
export const faultNames = Object.keys(faults) as Fault[]

const anyMember = ({ ids }: Ensemble, prng: Prng): number => ids[prng.int(ids.length)]!

async function killAndRestart(ensemble: Ensemble, id: number, prng: Prng): Promise<void> {
  await ensemble.kill(id)
  await pause(prng.int(1500))
  await ensemble.start(id)
}

async function pauseMember(ensemble: Ensemble, id: number, prng: Prng): Promise<void> {
  ensemble.member(id).signal('SIGSTOP')
  await pause(200 + prng.int(6000))
  ensemble.member(id).signal('SIGCONT')
}

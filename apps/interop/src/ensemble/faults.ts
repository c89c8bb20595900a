import type { Dice } from '../harness/seed.ts'
import type { Ensemble } from './ensemble.ts'

const pause = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

/** What can happen to an ensemble, from which it must recover by itself. Each resolves when it is over. */
export const faults = {
  async 'a member is killed'(ensemble: Ensemble, dice: Dice) {
    await killed(ensemble, one(ensemble, dice), dice)
  },
  async 'the leader is killed'(ensemble: Ensemble, dice: Dice) {
    await killed(ensemble, await ensemble.leader(), dice)
  },
  async 'a member stands still'(ensemble: Ensemble, dice: Dice) {
    await stopped(ensemble, one(ensemble, dice), dice)
  },
  async 'the leader stands still'(ensemble: Ensemble, dice: Dice) {
    await stopped(ensemble, await ensemble.leader(), dice)
  },
  async 'two members cannot reach each other'(ensemble: Ensemble, dice: Dice) {
    const first = one(ensemble, dice)
    const others = ensemble.ids.filter((id) => id !== first)
    const mend = ensemble.part(first, others[dice.int(others.length)]!)
    await pause(500 + dice.int(3000))
    mend()
  },
  async 'the leader is cut off'(ensemble: Ensemble, dice: Dice) {
    const mend = ensemble.isolate(await ensemble.leader())
    await pause(500 + dice.int(6000))
    mend()
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
} satisfies Record<string, (ensemble: Ensemble, dice: Dice) => Promise<void>>

export type Fault = keyof typeof faults
export const faultNames = Object.keys(faults) as Fault[]

const one = ({ ids }: Ensemble, dice: Dice): number => ids[dice.int(ids.length)]!

async function killed(ensemble: Ensemble, id: number, dice: Dice): Promise<void> {
  await ensemble.kill(id)
  await pause(dice.int(1500))
  await ensemble.start(id)
}

async function stopped(ensemble: Ensemble, id: number, dice: Dice): Promise<void> {
  ensemble.member(id).signal('SIGSTOP')
  await pause(200 + dice.int(6000))
  ensemble.member(id).signal('SIGCONT')
}

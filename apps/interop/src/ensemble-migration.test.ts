import { afterEach, expect, it } from 'vitest'
import { Ensemble } from './ensemble/ensemble.ts'
import { runUnderLoad } from './ensemble/load-run.ts'
import { describeWith } from './harness/requirements.ts'
import { seedFromEnv } from './harness/prng.ts'

let ensemble: Ensemble | undefined
afterEach(async () => {
  await ensemble?.[Symbol.asyncDispose]()
  ensemble = undefined
})

describeWith(['apache'], 'an ensemble of Apache ZooKeeper under load', () => {
  it('becomes one of ours member by member, and is turned back: no write and no session is lost', async () => {
    const seed = seedFromEnv()
    ensemble = await Ensemble.start({ kinds: ['apache-3.8', 'apache-3.8', 'apache-3.8'] })
    const { violations, ...figures } = await runUnderLoad(ensemble, { seed, sessionTimeout: 16_000 }, async (more) => {
      for (const kind of ['zabra', 'apache-3.8'] as const)
        for (const id of ensemble!.ids) {
          await ensemble!.replace(id, kind)
          await ensemble!.leader()
          await more(30)
        }
    })
    console.log(`migration: seed ${seed}, ${JSON.stringify(figures)}`)
    const outputs = ensemble.ids.map((id) => `--- ${id}\n${ensemble!.member(id).output.slice(-2000)}`)
    expect(violations, outputs.join('\n')).toEqual([])
    expect(figures.newSessions).toBe(0)
  }, 180_000)
})

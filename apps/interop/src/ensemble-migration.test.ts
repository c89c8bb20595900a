import { expect, it } from 'vitest'
import { Ensemble } from './ensemble/ensemble.ts'
import { runUnderLoad } from './ensemble/load-run.ts'
import { describeWith } from './harness/requirements.ts'
import { seedFromEnv } from './harness/prng.ts'

describeWith(['apache'], 'an ensemble of Apache ZooKeeper under load', () => {
  it('migrates to Zabra and back, member by member, without losing a write or a session', async () => {
    const seed = seedFromEnv()
    const ensemble = await Ensemble.start({ kinds: ['apache-3.8', 'apache-3.8', 'apache-3.8'] })
    const { violations, ...figures } = await runUnderLoad(
      ensemble,
      { seed, sessionTimeout: 16_000 },
      async (waitForWrites) => {
        for (const kind of ['zabra', 'apache-3.8'] as const)
          for (const id of ensemble.ids) {
            await ensemble.replace(id, kind)
            await ensemble.leader()
            await waitForWrites(30)
          }
      },
    )
    console.log(`migration: seed ${seed}, ${JSON.stringify(figures)}`)
    const outputs = ensemble.ids.map((id) => `--- ${id}\n${ensemble.member(id).output.slice(-2000)}`)
    expect(violations, outputs.join('\n')).toEqual([])
    expect(figures.newSessions).toBe(0)
  }, 180_000)
})

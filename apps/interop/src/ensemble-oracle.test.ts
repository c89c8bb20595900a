import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { describeWith } from './harness/requirements.ts'
import { reference, scratch, type Kind } from './harness/servers.ts'

describeWith(['apache'], 'an ensemble of two with an oracle', () => {
  it.each<readonly Kind[]>([
    ['zabra', reference],
    [reference, 'zabra'],
    ['zabra', 'zabra'],
  ])(
    'of %s and %s: the first serves alone when its oracle allows it, and the second rejoins',
    async (...kinds) => {
      const folder = scratch('oracle')
      const setOracle = (id: number, text: string): void => writeFileSync(join(folder, String(id)), text)
      for (const id of [1, 2]) setOracle(id, '0')
      const ensemble = await Ensemble.start({
        kinds,
        configOf: (id) => ({ oraclePath: join(folder, String(id)) }),
      })
      await ensemble.withClient(1, (client) => client.create('/both', 'x'))
      await ensemble.kill(2)
      await until('the loss of the quorum', async () => (await ensemble.modeOf(1)) === undefined)
      setOracle(1, '1')
      await until('a leader alone', async () => (await ensemble.modeOf(1)) === 'leader', 60_000)
      await ensemble.withClient(1, (client) => client.create('/alone', 'y'))
      await ensemble.start(2)
      expect(await ensemble.modeOf(2)).toBe('follower')
      await ensemble.withClient(2, (client) => client.create('/again', 'z'))
      const [one, two] = [...(await ensemble.dumps()).values()]
      expect(one).toEqual(two)
      expect(Object.keys(one!)).toEqual(expect.arrayContaining(['/both', '/alone', '/again']))
    },
  )
})

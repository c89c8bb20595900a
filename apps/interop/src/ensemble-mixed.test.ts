import { expect, it } from 'vitest'
import { expectSameTrees, writeThroughAll } from './ensemble/same-trees.ts'
import { Ensemble } from './ensemble/ensemble.ts'
import { describeWith } from './harness/requirements.ts'
import { reference, type Kind } from './harness/servers.ts'

const ensembles: readonly (readonly Kind[])[] = [
  [reference, 'zabra', reference],
  ['zabra', reference, 'zabra'],
]

describeWith(['apache', 'kazoo'], 'an ensemble of Zabra and Apache ZooKeeper', () => {
  it.each(ensembles)(
    'of %s, %s and %s keeps equal trees over leader changes and restarts',
    async (...kinds) => {
      const ensemble = await Ensemble.start({ kinds })
      await writeThroughAll(ensemble, 'first')
      await expectSameTrees(ensemble)
      const led = new Set<Kind>()
      // The leader is killed in each round, so that both kinds lead.
      for (const round of [1, 2, 3]) {
        const leader = await ensemble.leader()
        led.add(kinds[leader - 1]!)
        await ensemble.kill(leader)
        await ensemble.leader()
        await writeThroughAll(ensemble, `without-${round}`)
        await ensemble.start(leader)
        await writeThroughAll(ensemble, `again-${round}`)
        await expectSameTrees(ensemble)
      }
      await ensemble.kill(1)
      await writeThroughAll(ensemble, 'without-first')
      await ensemble.start(1)
      await expectSameTrees(ensemble)
      // A restart of all members at once.
      await ensemble.kill(...ensemble.ids)
      await ensemble.start(...ensemble.ids)
      await writeThroughAll(ensemble, 'anew')
      await expectSameTrees(ensemble)
      expect(led.size).toBe(2)
    },
  )

  it.each<readonly Kind[]>([
    [reference, reference, 'zabra'],
    ['zabra', 'zabra', reference],
  ])('of the voters %s and %s keeps the observer %s up to date', async (...kinds) => {
    const ensemble = await Ensemble.start({ kinds, observers: [3] })
    expect(await ensemble.modeOf(3)).toBe('observer')
    await writeThroughAll(ensemble, 'first')
    await expectSameTrees(ensemble)
    await ensemble.kill(3)
    await writeThroughAll(ensemble, 'without')
    await ensemble.start(3)
    await writeThroughAll(ensemble, 'again')
    await expectSameTrees(ensemble)
    // The observer finds the next leader.
    await ensemble.kill(2)
    await ensemble.start(2)
    await ensemble.leader()
    await writeThroughAll(ensemble, 'later')
    await expectSameTrees(ensemble)
  })

  it('has the same configuration node on every member', async () => {
    const ensemble = await Ensemble.start({ kinds: ['zabra', reference, 'zabra'] })
    const texts = new Set<string>()
    for (const id of ensemble.ids)
      texts.add(
        await ensemble.withClient(id, async (client) => String((await client.get('/zookeeper/config')).data)),
      )
    expect([...texts].join('\n---\n').split('---')).toHaveLength(1)
  })
})

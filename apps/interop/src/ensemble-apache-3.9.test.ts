import { expect, it } from 'vitest'
import { expectSameTrees, outputs, writeThroughAll } from './ensemble/same-trees.ts'
import { Ensemble } from './ensemble/ensemble.ts'
import { describeWith } from './harness/requirements.ts'
import type { Kind } from './harness/servers.ts'

const newest: Kind = 'apache-3.9'
/** The log message of Apache ZooKeeper when its tree differs from the digest of its leader. */
const DIGESTS_DIFFER = /digests are not matching/i

let ensemble: Ensemble

async function expectOneTree(): Promise<void> {
  await expectSameTrees(ensemble)
  expect(outputs(ensemble)).not.toMatch(DIGESTS_DIFFER)
}

async function exercise(label: string): Promise<void> {
  await writeThroughAll(ensemble, label)
  await expectOneTree()
}

describeWith(['newestApache', 'kazoo'], 'an ensemble with Apache ZooKeeper 3.9', () => {
  it.each<readonly Kind[]>([
    [newest, 'zabra', newest],
    ['zabra', newest, 'zabra'],
  ])('of %s, %s and %s keeps equal trees over leader changes', async (...kinds) => {
    ensemble = await Ensemble.start({ kinds })
    await exercise('first')
    const led = new Set<Kind>()
    for (const round of [1, 2, 3]) {
      const leader = await ensemble.leader()
      led.add(kinds[leader - 1]!)
      await ensemble.kill(leader)
      await ensemble.leader()
      await writeThroughAll(ensemble, `without-${round}`)
      await ensemble.start(leader)
      await exercise(`again-${round}`)
    }
    expect(led.size).toBe(2)
  })

  it.each<readonly Kind[]>([
    [newest, 'zabra', newest],
    ['zabra', newest, 'zabra'],
  ])('of %s, %s and %s serves during a rolling restart', async (...kinds) => {
    ensemble = await Ensemble.start({ kinds })
    for (const id of ensemble.ids) {
      await ensemble.stop(id)
      await ensemble.leader()
      await writeThroughAll(ensemble, `without-${id}`)
      await ensemble.start(id)
      await exercise(`with-${id}`)
    }
  })

  it('migrates from Apache ZooKeeper 3.9 to Zabra and back, member by member', async () => {
    ensemble = await Ensemble.start({ kinds: [newest, newest, newest] })
    await exercise('first')
    for (const kind of ['zabra', newest] as const)
      for (const id of ensemble.ids) {
        await ensemble.replace(id, kind)
        await exercise(`${kind}-${id}`.replaceAll('.', ''))
      }
  })

  it.each<readonly Kind[]>([
    [newest, newest, 'zabra'],
    ['zabra', 'zabra', newest],
  ])('of the voters %s and %s keeps the observer %s up to date', async (...kinds) => {
    ensemble = await Ensemble.start({ kinds, observers: [3] })
    await exercise('first')
    await ensemble.kill(3)
    await writeThroughAll(ensemble, 'without')
    await ensemble.start(3)
    await exercise('again')
  })
})

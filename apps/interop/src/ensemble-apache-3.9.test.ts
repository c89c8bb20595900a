import { afterEach, expect, it } from 'vitest'
import { expectSameTrees, outputs, writeThroughAll } from './ensemble/same-trees.ts'
import { Ensemble } from './ensemble/ensemble.ts'
import { describeWith } from './harness/requirements.ts'
import type { Kind } from './harness/servers.ts'

const newest: Kind = 'apache-3.9'
/** What Apache ZooKeeper writes when its tree is not the one that its leader foresaw. */
const DIGESTS_DIFFER = /digests are not matching/i

let ensemble: Ensemble | undefined
afterEach(async () => {
  await ensemble?.[Symbol.asyncDispose]()
  ensemble = undefined
})

async function expectOneTree(): Promise<void> {
  await expectSameTrees(ensemble!)
  expect(outputs(ensemble!)).not.toMatch(DIGESTS_DIFFER)
}

async function exercise(label: string): Promise<void> {
  await writeThroughAll(ensemble!, label)
  await expectOneTree()
}

describeWith(['newestApache', 'kazoo'], 'an ensemble with the newest Apache ZooKeeper', () => {
  it.each<readonly Kind[]>([
    [newest, 'zabra', newest],
    ['zabra', newest, 'zabra'],
  ])('of %s, %s and %s keeps one tree, whoever leads', async (...kinds) => {
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
  ])('of %s, %s and %s goes on while one after the other is restarted', async (...kinds) => {
    ensemble = await Ensemble.start({ kinds })
    for (const id of ensemble.ids) {
      await ensemble.stop(id)
      await ensemble.leader()
      await writeThroughAll(ensemble, `without-${id}`)
      await ensemble.start(id)
      await exercise(`with-${id}`)
    }
  })

  it('moves from one to the other, member by member, and back', async () => {
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
  ])('of the voters %s and %s tells the observer %s of everything', async (...kinds) => {
    ensemble = await Ensemble.start({ kinds, observers: [3] })
    await exercise('first')
    await ensemble.kill(3)
    await writeThroughAll(ensemble, 'without')
    await ensemble.start(3)
    await exercise('again')
  })
})

import { resolve } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { expectSameTrees } from './ensemble/alike.ts'
import { Ensemble } from './ensemble/ensemble.ts'
import { describeWith, python } from './harness/available.ts'
import { reference, run, type Kind } from './harness/servers.ts'

const script = resolve(import.meta.dirname, '../python/ensemble.py')

let ensemble: Ensemble | undefined
afterEach(async () => {
  await ensemble?.[Symbol.asyncDispose]()
  ensemble = undefined
})

/** Writes through each member and reads at every other one, with kazoo. */
async function throughAll(label: string): Promise<void> {
  const addresses = ensemble!.alive.map((id) => ensemble!.member(id).address)
  const { code, output } = await run(python, [script, label, ...addresses], { timeoutMs: 60_000 })
  if (code !== 0) throw new Error(`kazoo ended with ${code}:\n${output.slice(-3000)}\n${outputs()}`)
}

const outputs = (): string =>
  ensemble!.ids.map((id) => `--- ${id}\n${ensemble!.member(id).output.slice(-6000)}`).join('\n')

const teams: readonly (readonly Kind[])[] = [
  [reference, 'zabra', reference],
  ['zabra', reference, 'zabra'],
]

describeWith(['apache', 'kazoo'], 'an ensemble of both', () => {
  it.each(teams)(
    'of %s, %s and %s keeps one tree, whoever leads and whoever comes back',
    async (...kinds) => {
      ensemble = await Ensemble.start({ kinds })
      await throughAll('first')
      await expectSameTrees(ensemble!)
      const led = new Set<Kind>()
      // The leader is killed each time, so leadership goes from one kind to the other; then those who never led.
      for (const round of [1, 2, 3]) {
        const leader = await ensemble.leader()
        led.add(kinds[leader - 1]!)
        await ensemble.kill(leader)
        await ensemble.leader()
        await throughAll(`without-${round}`)
        await ensemble.start(leader)
        await throughAll(`again-${round}`)
        await expectSameTrees(ensemble!)
      }
      await ensemble.kill(1)
      await throughAll('without-first')
      await ensemble.start(1)
      await expectSameTrees(ensemble!)
      // All of them at once.
      await ensemble.kill(...ensemble.ids)
      await ensemble.start(...ensemble.ids)
      await throughAll('anew')
      await expectSameTrees(ensemble!)
      expect(led.size).toBe(2)
    },
  )

  it.each<readonly Kind[]>([
    [reference, reference, 'zabra'],
    ['zabra', 'zabra', reference],
  ])('of the voters %s and %s tells the observer %s of everything', async (...kinds) => {
    ensemble = await Ensemble.start({ kinds, observers: [3] })
    expect(await ensemble.modeOf(3)).toBe('observer')
    await throughAll('first')
    await expectSameTrees(ensemble!)
    await ensemble.kill(3)
    await throughAll('without')
    await ensemble.start(3)
    await throughAll('again')
    await expectSameTrees(ensemble!)
    // It finds the next leader by itself.
    await ensemble.kill(2)
    await ensemble.start(2)
    await ensemble.leader()
    await throughAll('later')
    await expectSameTrees(ensemble!)
  })

  it('shows the same configuration everywhere', async () => {
    ensemble = await Ensemble.start({ kinds: ['zabra', reference, 'zabra'] })
    const texts = new Set<string>()
    for (const id of ensemble.ids)
      texts.add(
        await ensemble.with(id, async (client) => String((await client.get('/zookeeper/config')).data)),
      )
    expect([...texts].join('\n---\n').split('---')).toHaveLength(1)
  })
})

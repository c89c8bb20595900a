import { expect, it } from 'vitest'
import { expectSameTrees, outputs, writeThroughAll } from './ensemble/same-trees.ts'
import { Ensemble, until, type EnsembleOptions } from './ensemble/ensemble.ts'
import { freePort } from './harness/ports.ts'
import { describeWith, isLong } from './harness/requirements.ts'
import { reference, type Kind } from './harness/servers.ts'

/** The log message of Apache ZooKeeper when its tree differs from the digest of its leader. */
const DIGESTS_DIFFER = /digests are not matching/i

let ensemble: Ensemble

async function start(options: EnsembleOptions): Promise<void> {
  ensemble = await Ensemble.start(options)
  await exercise('first')
}

async function expectOneTree(): Promise<void> {
  await expectSameTrees(ensemble)
  expect(outputs(ensemble)).not.toMatch(DIGESTS_DIFFER)
}

async function exercise(label: string): Promise<void> {
  await writeThroughAll(ensemble, label)
  await expectOneTree()
}

/** Restarts a member after the others have written without it. */
async function restart(id: number, label: string | number): Promise<void> {
  await ensemble.kill(id)
  await ensemble.leader()
  await writeThroughAll(ensemble, `without-${label}`)
  await ensemble.start(id)
  await exercise(`again-${label}`)
}

/** Both kinds lead in each of them. Short runs play the first one. */
const mixed = (apache: Kind): readonly (readonly Kind[])[] => {
  const [fewer, more] = [
    [apache, 'zabra', apache],
    ['zabra', apache, 'zabra'],
  ] as const
  if (isLong) return [fewer, more]
  return apache === reference ? [fewer] : [more]
}

const suite = (apache: Kind): void => {
  it.each(mixed(apache))(
    'of %s, %s and %s keeps equal trees over leader changes and restarts',
    async (...kinds) => {
      await start({ kinds })
      const led = new Set<Kind>()
      // The leader is killed in each round, so that both kinds lead.
      for (const round of [1, 2, 3]) {
        const leader = await ensemble.leader()
        led.add(kinds[leader - 1]!)
        await restart(leader, round)
      }
      expect(led.size).toBe(2)
      await restart(1, 'first')
      // A restart of all members at once.
      await ensemble.kill(...ensemble.ids)
      await ensemble.start(...ensemble.ids)
      await exercise('anew')
    },
  )

  it.each<readonly Kind[]>([
    ...(isLong || apache !== reference ? [[apache, apache, 'zabra'] as const] : []),
    ...(isLong || apache === reference ? [['zabra', 'zabra', apache] as const] : []),
  ])('of the voters %s and %s keeps the observer %s up to date', async (...kinds) => {
    const watched = kinds.indexOf('zabra') + 1
    const adminPort = await freePort()
    await start({
      kinds,
      observers: [3],
      configOf: (id) =>
        id === watched ? { 'admin.enableServer': 'true', 'admin.serverPort': adminPort } : {},
    })
    expect(await ensemble.modeOf(3)).toBe('observer')
    await until('a ready member', async () => (await fetch(`http://127.0.0.1:${adminPort}/readyz`)).ok)
    await restart(3, 'observer')
    // The observer finds the next leader.
    await ensemble.kill(2)
    await ensemble.start(2)
    await ensemble.leader()
    await exercise('later')
  })
}

describeWith(['apache', 'kazoo'], 'an ensemble of Zabra and Apache ZooKeeper 3.8', () => {
  suite(reference)

  it('has the same configuration node on every member', async () => {
    ensemble = await Ensemble.start({ kinds: ['zabra', reference, 'zabra'] })
    const texts = new Set<string>()
    for (const id of ensemble.ids)
      texts.add(
        await ensemble.withClient(id, async (client) => String((await client.get('/zookeeper/config')).data)),
      )
    expect([...texts].join('\n---\n').split('---')).toHaveLength(1)
  })
})

describeWith(['newestApache', 'kazoo'], 'an ensemble of Zabra and Apache ZooKeeper 3.9', () => {
  const newest: Kind = 'apache-3.9'
  suite(newest)

  // Short runs have the rolling restarts of ensemble-security.test.ts, under load.
  it.runIf(isLong).each(mixed(newest))(
    'of %s, %s and %s serves during a rolling restart',
    async (...kinds) => {
      await start({ kinds })
      for (const id of ensemble.ids) {
        await ensemble.stop(id)
        await ensemble.leader()
        await writeThroughAll(ensemble, `without-${id}`)
        await ensemble.start(id)
        await exercise(`with-${id}`)
      }
    },
  )

  // Short runs have the migration of ensemble-migration.test.ts.
  it.runIf(isLong)('migrates to Zabra and back, member by member', async () => {
    await start({ kinds: [newest, newest, newest] })
    for (const kind of ['zabra', newest] as const)
      for (const id of ensemble.ids) {
        await ensemble.replace(id, kind)
        await exercise(`${kind}-${id}`.replaceAll('.', ''))
      }
  })
})

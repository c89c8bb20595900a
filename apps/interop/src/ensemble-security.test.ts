import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { Ensemble } from './ensemble/ensemble.ts'
import { runUnderLoad } from './ensemble/load-run.ts'
import { seedFromEnv } from './harness/prng.ts'
import { describeWith } from './harness/requirements.ts'
import { scratch, type Kind } from './harness/servers.ts'

const zabra = resolve(import.meta.dirname, '../../cli/dist/main.js')

type Config = Record<string, string>

/** Returns the settings of each member for TLS, with a certificate of its own: they share an address, so URIs tell them apart. */
function certificates(ids: readonly number[]): (id: number, kind: Kind) => Config {
  const dir = scratch('quorum-tls')
  const cert = (...args: string[]): unknown =>
    execFileSync(process.execPath, [zabra, 'cert', ...args, '--dir', dir], { stdio: 'pipe' })
  cert('init-ca')
  for (const id of ids) cert('issue', '--member', String(id), '--hosts', 'localhost,127.0.0.1')
  return (id, kind) => ({
    'ssl.quorum.keyStore.location': join(dir, `server-${id}.pem`),
    'ssl.quorum.trustStore.location': join(dir, 'authority.pem'),
    ...(kind === 'zabra' ? { 'ssl.quorum.id': 'spiffe://zabra/member/{id}' } : {}),
  })
}

/** Writes at each member under two leaders, of which the first is stopped; expects both kinds to have led, and equal trees. */
async function expectEachKindToLead(ensemble: Ensemble): Promise<void> {
  const led = new Set<Kind>()
  for (let round = 0; round < 2; round++) {
    const leader = await ensemble.leader()
    led.add(ensemble.kindOf(leader))
    for (const id of ensemble.ids)
      await ensemble.withClient(id, (client) => client.create(`/r${round}-${id}`, String(id)))
    await ensemble.stop(leader)
    await ensemble.leader()
    await ensemble.start(leader)
  }
  await ensemble.leader()
  // A member that has synced shows the last zxid of its leader's epoch after the first write only.
  await ensemble.withClient(1, (client) => client.create('/last', ''))
  await ensemble.waitUntilSynced()
  expect(led).toEqual(new Set(ensemble.ids.map((id) => ensemble.kindOf(id))))
  // Clients of Apache ZooKeeper and of Zabra resume each other's sessions, so no secret is used.
  const outputs = ensemble.ids.map((id) => ensemble.member(id).output).join('\n')
  expect(outputs).toContain('take no part in the secret of sessions')
  expect(outputs).not.toContain('All members share a secret')
  const [first, ...others] = [...(await ensemble.dumps()).values()]
  for (const other of others) expect(other).toEqual(first)
}

describeWith(['apache'], 'an ensemble of Apache ZooKeeper and Zabra whose members log in by SASL', () => {
  const jaas = (): string => {
    const file = join(scratch('quorum-sasl'), 'jaas.conf')
    const module = 'org.apache.zookeeper.server.auth.DigestLoginModule required'
    writeFileSync(
      file,
      `QuorumServer {\n  ${module}\n  user_quser="secret";\n};\nQuorumLearner {\n  ${module}\n  username="quser"\n  password="secret";\n};\n`,
    )
    return file
  }
  const config = {
    'quorum.auth.enableSasl': 'true',
    'quorum.auth.learnerRequireSasl': 'true',
    'quorum.auth.serverRequireSasl': 'true',
  }

  it.each<{ name: string; kinds: Kind[] }>([
    { name: 'Apache ZooKeeper, then Zabra', kinds: ['zabra', 'zabra', 'apache-3.8'] },
    { name: 'Zabra, then Apache ZooKeeper', kinds: ['zabra', 'apache-3.8', 'zabra'] },
  ])(
    'serves writes, led by $name',
    async ({ kinds }) => {
      const javaFlags = [`-Djava.security.auth.login.config=${jaas()}`]
      const ensemble = await Ensemble.start({ kinds, config, javaFlags })
      await expectEachKindToLead(ensemble)
    },
    120_000,
  )
})

describeWith(['apache'], 'an ensemble of Apache ZooKeeper and Zabra with sslQuorum', () => {
  // Apache ZooKeeper 3.8 has no default cipher suite for TLS 1.3.
  const newest = { 'ssl.quorum.protocol': 'TLSv1.3', 'ssl.quorum.ciphersuites': 'TLS_AES_128_GCM_SHA256' }
  it.each<{ name: string; kinds: Kind[]; version: Config }>([
    {
      name: 'TLS 1.2, led by Apache ZooKeeper, then by Zabra',
      kinds: ['zabra', 'zabra', 'apache-3.8'],
      version: {},
    },
    {
      name: 'TLS 1.3, led by Zabra, then by Apache ZooKeeper',
      kinds: ['zabra', 'apache-3.8', 'zabra'],
      version: newest,
    },
  ])(
    'serves writes with $name',
    async ({ kinds, version }) => {
      const settings = certificates([1, 2, 3])
      const ensemble = await Ensemble.start({
        kinds,
        config: { sslQuorum: 'true' },
        configOf: (id, kind) => ({ ...settings(id, kind), ...version }),
      })
      await expectEachKindToLead(ensemble)
    },
    120_000,
  )

  it('has changed from plaintext in three rolling restarts under load, without losing a write or a session', async () => {
    const seed = seedFromEnv()
    const settings = certificates([1, 2, 3])
    let step: Config = {}
    const ensemble = await Ensemble.start({
      kinds: ['zabra', 'apache-3.8', 'zabra'],
      configOf: (id, kind) => (step['sslQuorum'] === undefined ? {} : { ...settings(id, kind), ...step }),
    })
    const { violations, ...figures } = await runUnderLoad(
      ensemble,
      { seed, sessionTimeout: 16_000 },
      async (waitForWrites) => {
        for (const [sslQuorum, portUnification] of [
          ['false', 'true'],
          ['true', 'true'],
          ['true', 'false'],
        ] as const) {
          step = { sslQuorum, portUnification }
          for (const id of ensemble.ids) {
            await ensemble.replace(id, ensemble.kindOf(id))
            await ensemble.leader()
            await waitForWrites(30)
          }
        }
      },
    )
    console.log(`to TLS: seed ${seed}, ${JSON.stringify(figures)}`)
    const outputs = ensemble.ids.map((id) => `--- ${id}\n${ensemble.member(id).output.slice(-2000)}`)
    expect(violations, outputs.join('\n')).toEqual([])
    expect(figures.newSessions).toBe(0)
    expect(ensemble.member(1).output).toMatch(/accepts TLS only/)
  }, 180_000)
})

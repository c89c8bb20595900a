import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { connect } from 'node:tls'
import { expect, it } from 'vitest'
import { Ensemble, until } from './ensemble/ensemble.ts'
import { runUnderLoad } from './ensemble/load-run.ts'
import { followMaster } from './ensemble/observer-master.ts'
import { expectSameTrees, outputs, writeThroughAll } from './ensemble/same-trees.ts'
import { freePort } from './harness/ports.ts'
import { seedFromEnv } from './harness/prng.ts'
import { describeWith, isLong, missingRequirements } from './harness/requirements.ts'
import { reference, scratch, type Kind } from './harness/servers.ts'

const zabra = resolve(import.meta.dirname, '../../cli/dist/main.js')

type Config = Record<string, string>
type SettingsOf = (id: number, kind: Kind) => Config

const voterIds = [1, 2, 3]
const observerIds = [4, 5]
const kindsWith = (apache: Kind): readonly Kind[] => ['zabra', apache, 'zabra', 'zabra', apache]

const hostOf = (id: number): string => `127.0.0.${id}`

/** The words with which Zabra logs that a member has refused its login. */
const refusalBy = (id: number): string =>
  `The login at server ${id} failed: it refused the user or the password`

/** Makes each voter lead in turn, and writes at each member under each leader. Expects equal trees. */
async function expectEachVoterToLead(ensemble: Ensemble): Promise<void> {
  const led: number[] = []
  const write = async (): Promise<void> => {
    const leader = await ensemble.leader()
    led.push(leader)
    for (const id of ensemble.running)
      await ensemble.withClient(id, (client) => client.create(`/led-${leader}-${id}`, String(id)))
    await ensemble.waitUntilSynced()
  }
  await write()
  await ensemble.stop(led[0]!)
  await write()
  await ensemble.stop(led[1]!)
  // The first leader lacks what the second one wrote, so the third voter leads.
  await ensemble.start(led[0]!)
  await write()
  await ensemble.start(led[1]!)
  await ensemble.waitUntilSynced()
  expect(led.toSorted((a, b) => a - b)).toEqual(voterIds)
  // Clients of Apache ZooKeeper and of Zabra resume each other's sessions, so no secret is used.
  expect(outputs(ensemble)).toContain('take no part in the secret of sessions')
  expect(outputs(ensemble)).not.toContain('All members share a secret')
  const [first, ...others] = [...(await ensemble.dumps()).values()]
  for (const other of others) expect(other).toEqual(first)
}

/**
 * Returns the settings of each member for TLS, with a certificate of its own: they share an address, so URIs tell them apart. Voters have
 * PEM files and observers PKCS #12. The first voter and the last observer offer TLS 1.2 alone.
 */
function tlsSettings(dir: string): SettingsOf {
  const cert = (...args: string[]): unknown =>
    execFileSync(process.execPath, [zabra, 'cert', ...args, '--dir', dir], { stdio: 'pipe' })
  cert('init-ca')
  const authority = join(dir, 'authority.pem')
  const hosts = ['localhost', ...[...voterIds, ...observerIds].map(hostOf)].join(',')
  for (const id of [...voterIds, ...observerIds]) {
    cert('issue', '--member', String(id), '--hosts', hosts)
    const store = join(dir, `server-${id}.p12`)
    const args = ['-export', '-in', join(dir, `server-${id}.pem`), '-out', store, '-passout', 'pass:secret']
    execFileSync('openssl', ['pkcs12', ...args], { stdio: 'pipe' })
  }
  return (id, kind) => {
    const protocols = id === 1 || id === 5 ? 'TLSv1.2' : 'TLSv1.3,TLSv1.2'
    const password = { 'ssl.quorum.keyStore.password': 'secret' }
    return {
      'ssl.quorum.keyStore.location': join(dir, `server-${id}.${observerIds.includes(id) ? 'p12' : 'pem'}`),
      ...(observerIds.includes(id) ? password : {}),
      'ssl.quorum.trustStore.location': authority,
      'ssl.quorum.protocol': protocols.split(',')[0]!,
      'ssl.quorum.enabledProtocols': protocols,
      // Apache ZooKeeper 3.8 has no default cipher suite for TLS 1.3.
      'ssl.quorum.ciphersuites': 'TLS_AES_128_GCM_SHA256,TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256',
      ...(kind === 'zabra' ? { 'ssl.quorum.id': 'spiffe://zabra/member/{id}' } : {}),
    }
  }
}

/** Resolves to the version of TLS that a port agrees on with a client that offers 1.2 and 1.3. */
function negotiatedVersion(port: number, dir: string): Promise<string | null> {
  const pem = readFileSync(join(dir, 'server-1.pem'))
  const socket = connect({
    port,
    host: '127.0.0.1',
    key: pem,
    cert: pem,
    ca: readFileSync(join(dir, 'authority.pem')),
  })
  return new Promise((resolveVersion, reject) => {
    socket.once('error', reject)
    socket.once('secureConnect', () => {
      resolveVersion(socket.getProtocol())
      socket.destroy()
    })
  })
}

/** Returns the options of an ensemble whose members log in by SASL, and what writes the password of those that connect. */
function saslLogins() {
  const file = join(scratch('quorum-sasl'), 'jaas.conf')
  return {
    writePassword: (password: string): void => {
      const module = 'org.apache.zookeeper.server.auth.DigestLoginModule required'
      const server = `QuorumServer {\n  ${module}\n  user_quser="secret";\n};\n`
      const learner = `QuorumLearner {\n  ${module}\n  username="quser"\n  password="${password}";\n};\n`
      writeFileSync(file, server + learner)
    },
    config: {
      'quorum.auth.enableSasl': 'true',
      'quorum.auth.learnerRequireSasl': 'true',
      'quorum.auth.serverRequireSasl': 'true',
    },
    // The clients of Apache ZooKeeper 3.9 know no DIGEST-MD5 in its FIPS mode.
    javaFlags: [`-Djava.security.auth.login.config=${file}`, '-Dzookeeper.fips-mode=false'],
  }
}

let certificates: { readonly dir: string; readonly settings: SettingsOf } | undefined

/** Returns the folder of the certificates, which are made once, and the settings that name them. */
function tls(): { readonly dir: string; readonly settings: SettingsOf } {
  const dir = scratch('quorum-tls')
  certificates ??= { dir, settings: tlsSettings(dir) }
  return certificates
}

const hasNewest = missingRequirements('newestApache') === undefined
/** Whether each test runs with each release of Apache ZooKeeper. Short runs share them between two releases where both are there. */
const isAll = isLong || !hasNewest

const suite = (apache: Kind): void => {
  const kinds = kindsWith(apache)
  const isReference = apache === reference
  const rolls = isAll || !isReference

  it('closes connections with a wrong login by SASL, and serves writes under each voter with the right one', async () => {
    const { writePassword, ...sasl } = saslLogins()
    const ensemble = await Ensemble.plan({ kinds, observers: observerIds, ...sasl })
    /** Starts an observer until it is refused. */
    const refuse = async (id: number, isRefused: () => Promise<boolean>): Promise<void> => {
      const starting = ensemble.start(id).catch(() => {})
      await until(`member ${id} to be refused`, isRefused)
      expect(await ensemble.modeOf(id)).toBe(undefined)
      await ensemble.kill(id)
      await starting
    }
    writePassword('secret')
    await ensemble.start(...voterIds)
    writePassword('guessed')
    const output = (id: number): string => (ensemble.running.includes(id) ? ensemble.member(id).output : '')
    // Zabra logs one refusal in ten seconds, so Apache ZooKeeper comes first, which may have no logger.
    const [ofZabra, ofApache] = observerIds as [number, number]
    await refuse(ofApache, async () => [1, 3].every((id) => /login by SASL of .* failed/.test(output(id))))
    await refuse(ofZabra, async () => voterIds.every((id) => output(ofZabra).includes(refusalBy(id))))
    writePassword('secret')
    await ensemble.start(...observerIds)
    await expectEachVoterToLead(ensemble)
  }, 180_000)

  const origin = rolls
    ? 'comes to TLS from plaintext in three rolling restarts under load without a failed call'
    : 'uses TLS from its first start'
  it(`${origin}, and serves writes under each voter`, async () => {
    const { dir, settings } = tls()
    let step: Config = rolls ? {} : { sslQuorum: 'true' }
    const ensemble = await Ensemble.plan({
      kinds,
      observers: observerIds,
      configOf: (id, kind) => (step['sslQuorum'] === undefined ? {} : { ...settings(id, kind), ...step }),
    })
    await ensemble.start(...voterIds)
    if (rolls)
      await underLoad(ensemble, async (waitForWrites) => {
        for (const [sslQuorum, portUnification] of [
          ['false', 'true'],
          ['true', 'true'],
          ['true', 'false'],
        ] as const) {
          step = { sslQuorum, portUnification }
          for (const id of voterIds) {
            await ensemble.replace(id, ensemble.kindOf(id))
            await ensemble.leader()
            await waitForWrites(30)
          }
        }
      })
    expect(ensemble.member(1).output).toMatch(/accepts TLS only/)
    const versions = await Promise.all(voterIds.map((id) => negotiatedVersion(ensemble.portsOf(id)[1]!, dir)))
    expect(versions).toEqual(['TLSv1.2', 'TLSv1.3', 'TLSv1.3'])
    await ensemble.start(...observerIds)
    await expectEachVoterToLead(ensemble)
  }, 240_000)

  it.runIf(isAll || isReference)(
    'logs in by SASL over TLS, and serves writes under each voter',
    async () => {
      const { settings } = tls()
      const { writePassword, ...sasl } = saslLogins()
      writePassword('secret')
      const ensemble = await Ensemble.plan({
        kinds,
        observers: observerIds,
        ...sasl,
        configOf: (id, kind) => ({ ...settings(id, kind), sslQuorum: 'true' }),
      })
      await ensemble.start(...voterIds, ...observerIds)
      await expectEachVoterToLead(ensemble)
    },
    240_000,
  )

  // The rolling restarts come through such ensembles too.
  it.runIf(!rolls || isLong)(
    'serves writes under each voter where some members connect by TLS and others do not',
    async () => {
      const { settings } = tls()
      const ensemble = await Ensemble.plan({
        kinds,
        observers: observerIds,
        configOf: (id, kind) => ({
          ...settings(id, kind),
          sslQuorum: String([1, 2, 5].includes(id)),
          portUnification: 'true',
        }),
      })
      await ensemble.start(...voterIds, ...observerIds)
      await expectEachVoterToLead(ensemble)
    },
    240_000,
  )

  // Short runs have TLS with a login inside it: it takes each step of TLS alone.
  it.each([
    ...(isLong
      ? ([
          ['Zabra', 'TLS', 1],
          ['Apache ZooKeeper', 'TLS', 2],
        ] as const)
      : []),
    ...(isAll || isReference ? ([['Zabra', 'TLS and SASL', 1]] as const) : []),
    ...(isAll || !isReference ? ([['Apache ZooKeeper', 'TLS and SASL', 2]] as const) : []),
  ] as const)(
    'has observers of both kinds behind an observer master of %s, over %s',
    async (_, security, master) => {
      const { settings } = tls()
      const { writePassword, ...sasl } = saslLogins()
      writePassword('secret')
      const observerMasterPort = await freePort()
      const ensemble = await Ensemble.plan({
        kinds,
        observers: observerIds,
        hostOf,
        ...(security === 'TLS' ? {} : sasl),
        configOf: (id, kind) => ({
          ...settings(id, kind),
          sslQuorum: 'true',
          ...(id === master || observerIds.includes(id) ? { observerMasterPort } : {}),
        }),
      })
      // In this order, so that 3 leads and the master runs before the observers connect.
      await ensemble.start(3 - master, 3)
      await ensemble.start(master)
      await ensemble.start(...observerIds)
      expect(await ensemble.leader()).toBe(3)
      for (const id of observerIds) await followMaster(ensemble, id, master)
      await writeThroughAll(ensemble, 'behind')
      await expectSameTrees(ensemble)
    },
    240_000,
  )
}

/** Changes an ensemble while clients write, whose calls all succeed: the clients retry them where a connection is lost. */
async function underLoad(
  ensemble: Ensemble,
  change: (waitForWrites: (count: number) => Promise<void>) => Promise<void>,
): Promise<void> {
  const options = { seed: seedFromEnv(), sessionTimeout: 16_000, retries: 'idempotent' } as const
  const { violations, ...figures } = await runUnderLoad(ensemble, options, change)
  console.log(`to TLS: seed ${options.seed}, ${JSON.stringify(figures)}`)
  expect(violations, `${violations.join('\n')}\n${outputs(ensemble)}`).toEqual([])
  expect(figures).toMatchObject({ unknown: 0, newSessions: 0 })
}

describeWith(['apache'], 'an ensemble of Zabra and Apache ZooKeeper 3.8', () => suite(reference))
describeWith(['newestApache'], 'an ensemble of Zabra and Apache ZooKeeper 3.9', () => suite('apache-3.9'))

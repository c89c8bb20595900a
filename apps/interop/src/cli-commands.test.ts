import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { describeWith } from './harness/requirements.ts'
import { freePort } from './harness/ports.ts'
import { serverUnderTest, reference, run, scratch, type Kind } from './harness/servers.ts'
import { onBoth } from './harness/transcript.ts'

const zabra = resolve(import.meta.dirname, '../../cli/dist/main.js')
const folder = resolve(import.meta.dirname, '../../../packages/runtime/src/testdata/tls')
const certificate = (name: string): string => join(folder, name)

const users =
  'Server {\n  org.apache.zookeeper.server.auth.DigestLoginModule required user_bob="secret";\n};\n'

it('zabra get loads one file of code, beside those that load it', async () => {
  const coverage = scratch('loaded')
  // Nothing listens on port 1: the answer does not matter.
  const { code } = await run(process.execPath, [zabra, 'get', '/app', '--server', '127.0.0.1:1'], {
    env: { ...process.env, NODE_V8_COVERAGE: coverage },
  })
  expect(code).toBe(8)
  const [file = ''] = readdirSync(coverage)
  const { result } = JSON.parse(readFileSync(join(coverage, file), 'utf8')) as { result: { url: string }[] }
  const files = result.map(({ url }) => url).filter((url) => url.startsWith('file:'))
  const loaded = files.map((url) => basename(url).replace(/-[\w-]{8}\.js$/, ''))
  expect(loaded.toSorted()).toEqual(['everyday', 'get', 'main.js', 'rolldown-runtime', 'start'])
})

describeWith(['apache', 'netty'], 'the zabra command', () => {
  it('authenticates by SASL and by each kind of TLS key file, with the same replies from both servers', async () => {
    const home = scratch('commands')
    const [jaas, password, key, chain] = ['jaas.conf', 'password', 'alice.key', 'alice.crt'].map((name) =>
      join(home, name),
    ) as [string, string, string, string]
    const pem = readFileSync(certificate('alice.pem'), 'utf8')
    const cut = pem.indexOf('-----BEGIN CERTIFICATE')
    for (const [file, text] of [
      [jaas, users],
      [password, 'secret\n'],
      [key, pem.slice(0, cut)],
      [chain, pem.slice(cut)],
    ] as const)
      writeFileSync(file, text)
    const ports = new Map<Kind, number>([
      [reference, await freePort()],
      [serverUnderTest, await freePort()],
    ])
    const config = {
      serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
      secureClientPortAddress: '127.0.0.1',
      'ssl.keyStore.location': certificate('server.p12'),
      'ssl.keyStore.password': 'secret',
      'ssl.trustStore.location': certificate('authority.pem'),
      'ssl.clientAuth': 'want',
      'authProvider.1': 'org.apache.zookeeper.server.auth.SASLAuthenticationProvider',
      'authProvider.2': 'org.apache.zookeeper.server.auth.X509AuthenticationProvider',
    }
    const flags = [`-Djava.security.auth.login.config=${jaas}`]
    const perKind = (kind: Kind) => ({ secureClientPort: ports.get(kind)! })
    const login = ['--sasl-user', 'bob', '--sasl-password-file', password]
    const ca = ['--ca', certificate('authority.pem')]
    const { apache, zabra: own } = await onBoth(
      async (server) => {
        const secure = `localhost:${perKind(server.kind).secureClientPort}`
        const said: string[] = []
        const call = async (name: string, argv: readonly string[], env: Record<string, string> = {}) => {
          const { code, stdout } = await run(process.execPath, [zabra, ...argv], {
            env: { ...process.env, ZABRA_SERVER: server.address, ...env },
          })
          const lines = stdout.split('\n').filter((line) => line !== '')
          said.push(`--- ${name}: ${code}`, ...lines.toSorted())
        }
        await call('login', ['whoami', ...login])
        await call('own', ['create', '/own', 'x', '--acl', 'auth::cdrwa', ...login])
        await call('list', ['getAcl', '/own', ...login])
        await call('stranger', ['get', '/own'])
        await call('wrong', ['ls', '/', '--sasl-user', 'bob'], { ZABRA_SASL_PASSWORD: 'wrong' })
        // Not the password of bob: Apache ZooKeeper accepts any unknown name with the password of the last user that logged in.
        await call('unknown', ['ls', '/', '--sasl-user', 'eve'], { ZABRA_SASL_PASSWORD: 'hidden' })
        const tls = ['--tls', '--server', secure, ...ca]
        await call('tls alone', ['ls', '/', ...tls])
        await call('tls, key apart', ['whoami', ...tls, '--cert', chain, '--key', key])
        await call('tls, PKCS #12', ['whoami', ...tls, '--cert', certificate('alice.p12'), ...login], {
          ZABRA_CERT_PASSWORD: 'secret',
        })
        await call('tls, stranger', ['ls', '/', ...tls, '--cert', certificate('stranger.pem')])
        await call('plain to the TLS port', ['ls', '/', '--server', secure, '--timeout', '1000'])
        await call('shell', ['shell', '-c', 'whoami', '-c', 'get /own', ...tls, ...login])
        return said.join('\n')
      },
      config,
      flags,
      perKind,
    )
    expect(own).toEqual(apache)
    expect(own.filter((line) => line === 'sasl: bob')).toHaveLength(3)
    expect(own.filter((line) => line.startsWith('x509: CN=alice'))).toHaveLength(2)
    expect(own).toContain('--- stranger: 7')
    expect(own).toContain('--- wrong: 7')
    expect(own).toContain('--- tls, stranger: 8')
  })
})

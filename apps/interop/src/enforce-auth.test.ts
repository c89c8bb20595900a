import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { expect, it } from 'vitest'
import { describeWith } from './harness/requirements.ts'
import { bytes } from './harness/bytes.ts'
import { Client } from './harness/client.ts'
import { op } from './harness/opcodes.ts'
import { run, scratch, type Server } from './harness/servers.ts'
import { onBoth } from './harness/transcript.ts'

const zabra = resolve(import.meta.dirname, '../../cli/dist/main.js')
const module = 'org.apache.zookeeper.server.auth'
const users = `Server {\n  ${module}.DigestLoginModule required user_bob="secret";\n};\n`

/** Runs a command with each kind of authentication. Resolves to the exit codes. */
async function commands(server: Server): Promise<string> {
  const said: string[] = []
  for (const [name, argv] of [
    ['nobody', []],
    ['digest', ['--auth', 'digest:bob:secret']],
    ['sasl', ['--sasl-user', 'bob']],
  ] as const) {
    const { code } = await run(process.execPath, [zabra, 'ls', '/', ...argv], {
      env: { ...process.env, ZABRA_SERVER: server.address, ZABRA_SASL_PASSWORD: 'secret' },
      timeoutMs: 20_000,
    })
    said.push(`${name} ends with ${code}`)
  }
  return said.join('\n')
}

/** Sends two requests without authentication. Resolves to their error codes, or `closed`. */
async function unauthenticated(server: Server): Promise<string> {
  const client = await Client.connect(server.port)
  const said: string[] = []
  for (const body of [bytes().str('/').bool(false).done(), bytes().str('/').bool(false).done()])
    said.push(
      await client.request(op.exists, body).then(
        ({ err }) => `exists: ${err}`,
        () => 'exists: closed',
      ),
    )
  client.drop()
  return said.join('\n')
}

describeWith(['apache'], 'enforce.auth.schemes', () => {
  const jaas = join(scratch('enforce'), 'jaas.conf')
  writeFileSync(jaas, users)
  it.each([
    ['digest', ['digest']],
    ['sasl', ['sasl']],
    ['digest,sasl', ['digest', 'sasl']],
    ['ip', ['nobody', 'digest', 'sasl']],
  ])('%s admits the same clients as Apache ZooKeeper', async (schemes, served) => {
    const config = {
      'enforce.auth.enabled': 'true',
      'enforce.auth.schemes': schemes,
      'authProvider.1': `${module}.SASLAuthenticationProvider`,
    }
    const flags = [`-Djava.security.auth.login.config=${jaas}`]
    const { apache, zabra: own } = await onBoth(
      async (server) => `${await commands(server)}\n${await unauthenticated(server)}`,
      config,
      flags,
    )
    expect(own).toEqual(apache)
    expect(own.filter((line) => line.endsWith('ends with 0'))).toEqual(
      served.map((name) => `${name} ends with 0`),
    )
  })
})

import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { connect } from 'node:tls'
import { expect, it } from 'vitest'
import { describeWith, python } from './harness/requirements.ts'
import { fourLetterWord } from './harness/client.ts'
import { freePort } from './harness/ports.ts'
import { apacheClassPath, serverUnderTest, reference, run, Server, type Kind } from './harness/servers.ts'

const folder = resolve(import.meta.dirname, '../../../packages/runtime/src/testdata/tls')
const pem = (name: string): Buffer => readFileSync(join(folder, name))

interface SecureServer {
  readonly server: Server
  readonly port: number
}

/** Runs a scenario on the TLS ports of Apache ZooKeeper and of the server under test concurrently. */
async function onBoth(
  scenario: (at: SecureServer) => Promise<string[]>,
  config: Readonly<Record<string, string>> = {},
): Promise<{ apache: string[]; zabra: string[] }> {
  const one = async (kind: Kind): Promise<string[]> => {
    const port = await freePort()
    await using server = await Server.start({
      kind,
      config: {
        serverCnxnFactory: 'org.apache.zookeeper.server.NettyServerCnxnFactory',
        secureClientPort: port,
        secureClientPortAddress: '127.0.0.1',
        'ssl.keyStore.location': join(folder, 'server.p12'),
        'ssl.keyStore.password': 'secret',
        'ssl.trustStore.location': join(folder, 'authority.pem'),
        'ssl.clientAuth': 'want',
        ...config,
      },
    })
    try {
      return await scenario({ server, port })
    } catch (error) {
      throw new Error(`On ${kind}: ${String(error)}\nOutput of the server:\n${server.output.slice(-3000)}`, {
        cause: error,
      })
    }
  }
  const [apache, zabra] = await Promise.all([one(reference), one(serverUnderTest)])
  return { apache, zabra }
}

/** Sends a four-letter word over TLS. Resolves to the reply, or to `refused`. */
function ask(port: number, certificate: string | undefined, word = 'isro'): Promise<string> {
  return new Promise((done) => {
    const shown = certificate === undefined ? {} : { cert: pem(certificate), key: pem(certificate) }
    const socket = connect({ host: '127.0.0.1', port, ca: pem('authority.pem'), ...shown }, () =>
      socket.write(word),
    )
    let text = ''
    socket.on('data', (chunk) => (text += chunk.toString()))
    // A refusal is an error or a plain close, depending on the TLS version.
    socket.on('error', () => {})
    socket.on('close', () => done(text === '' ? 'refused' : text))
  })
}

/** Valid and invalid distinguished names, as Java parses them. */
const ids =
  'bob||CN=bob|cn=bob, o=x|CN=a+OU=b,C=DE|CN=a;O=b|CN="a,b"|CN="a|CN=a\\,b|CN=a\\2cb|CN=a\\zb|CN=a,|CN=a<b|CN=a#b|CN=#61|CN=#0c0161|CN=|=x|FOO=x|1.2.3=x|3.2=x|OID.1.2.3=x|E=x|EMAILADDRESS=a@b|SN=x|SURNAME=x|CN=a=b|CN=a+b|+|CN=ü'.split(
    '|',
  )

describeWith(['apache', 'netty', 'kazoo'], 'kazoo over TLS', () => {
  async function transcript({ port }: SecureServer): Promise<string[]> {
    const script = resolve(import.meta.dirname, '../python/tls.py')
    const { code, stdout, stderr } = await run(python, [script, `127.0.0.1:${port}`, folder], {
      input: ids.join('\0'),
    })
    if (code !== 0)
      throw new Error(`tls.py exited with ${code}:\n${stdout.slice(-1500)}\n${stderr.slice(-3000)}`)
    return stdout.trimEnd().split('\n')
  }

  it('gets the same permissions by its certificate, and ACL names are validated alike', async () => {
    const { apache, zabra } = await onBoth(transcript)
    expect(zabra).toEqual(apache)
    expect(zabra).toContain('alice opens what is sealed !! NoAuthError')
    expect(zabra.at(-1)).toBe('end')
    expect(zabra.length).toBeGreaterThan(40)
  })

  it('is the super user when X509AuthenticationProvider.superUser names its subject', async () => {
    const superUser = 'CN=alice,OU=Tests,O=Zabra\\\\, Inc.,C=DE'
    const { apache, zabra } = await onBoth(transcript, { 'X509AuthenticationProvider.superUser': superUser })
    expect(zabra).toEqual(apache)
    expect(zabra).toContain("alice opens what is sealed -> b''")
    expect(zabra).toContain('odd opens what is sealed !! NoAuthError')
  })
})

describeWith(['apache', 'netty'], 'clients with and without a certificate', () => {
  it.each(['need', 'want', 'none'])('are admitted alike with ssl.clientAuth=%s', async (clientAuth) => {
    const { apache, zabra } = await onBoth(
      async ({ port }) => {
        const outcomes: string[] = []
        for (const certificate of [undefined, 'alice.pem', 'stranger.pem'])
          outcomes.push(`${certificate ?? 'nothing'}: ${await ask(port, certificate)}`)
        return outcomes
      },
      { 'ssl.clientAuth': clientAuth },
    )
    expect(zabra).toEqual(apache)
    expect(zabra[1]).toBe('alice.pem: rw')
  })
})

describeWith(['apache', 'netty'], 'one port for clients with TLS and without', () => {
  it('serves both alike', async () => {
    const { apache, zabra } = await onBoth(
      async ({ server }) => {
        const outcomes = [`plain: ${await fourLetterWord(server.port, 'isro')}`]
        for (const certificate of [undefined, 'alice.pem', 'stranger.pem'])
          outcomes.push(`${certificate ?? 'nothing'}: ${await ask(server.port, certificate)}`)
        outcomes.push(`plain again: ${await fourLetterWord(server.port, 'isro')}`)
        return outcomes
      },
      { 'client.portUnification': 'true', 'ssl.clientAuth': 'need' },
    )
    expect(zabra).toEqual(apache)
    expect(zabra).toEqual([
      'plain: rw',
      'nothing: refused',
      'alice.pem: rw',
      'stranger.pem: refused',
      'plain again: rw',
    ])
  })
})

describeWith(['apache', 'netty'], "Apache ZooKeeper's shell over TLS", () => {
  it('prints the same replies from both servers', async () => {
    const session = `
ls /
whoami
create /own data auth::cdrwa
getAcl /own
create /hers data x509:CN=somebody:cdrwa
get /hers
getAcl /hers
create /bad data x509:nobody:r
setAcl /own x509:CN=alice:r
addauth x509 anything
whoami
delete /own
quit
`.trim()
    const { apache, zabra } = await onBoth(async ({ port }) => {
      const options = {
        'client.secure': 'true',
        clientCnxnSocket: 'org.apache.zookeeper.ClientCnxnSocketNetty',
        'ssl.keyStore.location': join(folder, 'alice.p12'),
        'ssl.keyStore.password': 'secret',
        'ssl.trustStore.location': join(folder, 'authority.pem'),
      }
      const flags = Object.entries(options).map(([key, value]) => `-Dzookeeper.${key}=${value}`)
      const main = 'org.apache.zookeeper.ZooKeeperMain'
      const args = ['-cp', apacheClassPath, ...flags, main, '-server', `localhost:${port}`]
      const { code, stdout, stderr } = await run('java', args, { input: `${session}\n` })
      const lines = `${stdout}\n${stderr}`
        // Another thread prints events, also in the middle of a line.
        .replaceAll(/\n(WATCHER::|WatchedEvent .*)\n/g, '')
        .split('\n')
        .filter((line) => !/^SLF4J|^$|^Connecting/.test(line))
      return [`code ${code}`, ...lines]
    })
    expect(sorted(zabra)).toEqual(sorted(apache))
    expect(zabra.join('\n')).toContain('x509: CN=alice,OU=Tests,O=Zabra\\, Inc.,C=DE')
  })
})

/** Sorts lines: identities come from a hash table. */
const sorted = (lines: readonly string[]): string[] => lines.toSorted()

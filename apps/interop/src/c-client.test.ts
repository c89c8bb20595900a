import { expect, it } from 'vitest'
import { cliMt, describeWith } from './harness/requirements.ts'
import { spawnOwned } from './harness/servers.ts'
import { onBoth } from './harness/transcript.ts'

const commands = [
  'create /c',
  'create /c',
  'create /none/x',
  'create +s /c/s',
  'create +e /c/e',
  'create +es /c/es',
  'create /c/e/x',
  'create +c /c/cont',
  'create +t=5000 /c/ttl',
  'create +ts=5000 /c/ttls',
  'create2 /c/two',
  'create2 +s /c/two',
  'get /c',
  'set /c hello',
  'get /c',
  'set /c',
  'get /none',
  'ls /c',
  'create /c/fires',
  'ls2 /c',
  'ls /none',
  'exists /c',
  'exists /none',
  'wexists /c/later',
  'create /c/later',
  'wexists /c/later',
  'set /c/later x',
  'aget /c',
  'aset /c async',
  'als /c',
  'als2 /c',
  'acreate /c/a',
  'aexists /c/a',
  'awexists /c/a',
  'adelete /c/a',
  'async /c',
  'delete /c',
  'delete /c/later',
  'delete /none',
  'sync /none',
  'myid',
  'addauth digest bob:pw',
  'config',
  'help',
  'nonsense',
  'get c',
]

/** Runs the commands in the C shell one at a time: after each, a `sync` on a marker path shows that all replies have arrived. */
async function shell(address: string): Promise<string> {
  const child = spawnOwned(cliMt, [address])
  let output = ''
  const outputWaiters: (() => void)[] = []
  const append = (chunk: Buffer): void => {
    output += chunk.toString()
    for (const wake of outputWaiters.splice(0)) wake()
  }
  child.stdout.on('data', append)
  child.stderr.on('data', append)
  let ended = false
  child.once('close', () => {
    ended = true
    for (const wake of outputWaiters.splice(0)) wake()
  })
  const until = async (text: string): Promise<void> => {
    const timer = setTimeout(() => child.kill('SIGKILL'), 60_000)
    while (!output.includes(text) && !ended) await new Promise<void>((done) => outputWaiters.push(done))
    clearTimeout(timer)
  }
  // The last line that the shell prints about its connection.
  await until('Got a new session id')
  const transcript: string[] = []
  for (const [index, command] of commands.entries()) {
    output = ''
    const marker = `/marker-${index}`
    child.stdin.write(`${command}\nsync ${marker}\n`)
    await until(`[${marker}]: rc = 0\n\tname = ${marker}`)
    transcript.push(`> ${command}${ended ? ' (the shell exited)' : ''}`, ...lines(output, marker))
    if (ended) break
  }
  child.stdin.end('quit\n')
  await new Promise<void>((done) => (ended ? done() : child.once('close', () => done())))
  return transcript.join('\n')
}

/** Masks and sorts the lines: the shell prints from two threads, so their order is not deterministic. */
function lines(output: string, marker: string): string[] {
  return output
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.includes(marker) && !/time = -?\d+ msec/.test(line))
    .map((line) =>
      line
        .replace(/((?:c|m)time ?= ?).*/, '$1TIME')
        .replace(/((?:c|m|p)zxid ?= ?)[0-9a-f]+/, '$1ZXID')
        .replace(/(ephemeralOwner = )(?!0$)\w+/, '$1SESSION')
        .replace(/(session Id = )\w+/, '$1SESSION')
        .replace(/^.*(ZOO_[A-Z]+)@.*$/, '$1 line'),
    )
    .sort()
}

describeWith(['apache', 'cliMt'], 'the shell of the C client (cli_mt)', () => {
  it('prints the same replies from Zabra and from Apache ZooKeeper', async () => {
    const { apache, zabra } = await onBoth((server) => shell(server.address), {
      extendedTypesEnabled: 'true',
    })
    expect(zabra).toEqual(apache)
    expect(zabra.filter((line) => line.startsWith('> '))).toEqual(commands.map((command) => `> ${command}`))
  })
})

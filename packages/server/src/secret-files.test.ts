import { ManualClock, MemoryDisk, silentLogger, type FileMode } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { openSecretFiles, SecretFiles } from './secret-files.ts'
import { defaults, loadSettings, rowOf, settingNames } from './settings/index.ts'
import { TestServer } from './testing/test-server.ts'

const settings = defaults({
  dataDir: '/data',
  quorumSecretFile: '/secrets/quorum',
  sslKeyStoreLocation: '/secrets/tls.pem',
  sslTrustStoreLocation: '/public/authorities.pem',
  sslTrustStorePasswordPath: '/secrets/trust-password',
  adminKeyStoreLocation: '/secrets/tls.pem',
})

/** Returns a disk whose files have these modes. */
function diskWith(modes: Readonly<Record<string, number>>, isRoots = false) {
  const modeOf = (path: string): Promise<FileMode | undefined> => {
    const bits = modes[path]
    return Promise.resolve(bits === undefined ? undefined : { bits, isRoots })
  }
  return Object.assign(new MemoryDisk(), { modeOf })
}

it('files with secrets that others may read or write are found once, with what they may do', async () => {
  const disk = diskWith({
    '/secrets/quorum': 0o600,
    '/secrets/tls.pem': 0o640,
    '/public/authorities.pem': 0o644,
    '/secrets/trust-password': 0o626,
  })
  expect(await openSecretFiles(settings, disk)).toEqual([
    {
      key: 'ssl.keyStore.location',
      path: '/secrets/tls.pem',
      isConfiguration: false,
      evidence: 'its mode is 640, its group may read it',
      command: 'chmod 600 /secrets/tls.pem',
    },
    {
      key: 'ssl.trustStore.passwordPath',
      path: '/secrets/trust-password',
      isConfiguration: false,
      evidence: 'its mode is 626, its group may write it, all users may read and write it',
      command: 'chmod 600 /secrets/trust-password',
    },
  ])
})

it('a file of root may be readable for a group, by which another user reads it', async () => {
  for (const [bits, commands] of [
    [0o640, []],
    [0o440, []],
    [0o660, ['chmod 640 /secrets/quorum']],
    [0o644, ['chmod 640 /secrets/quorum']],
    [0o604, ['chmod 600 /secrets/quorum']],
  ] as const) {
    const found = await openSecretFiles(settings, diskWith({ '/secrets/quorum': bits }, true))
    expect(found.map(({ command }) => command)).toEqual(commands)
  }
})

it('the configuration file counts where secrets are written in it, by its keys and without their values', async () => {
  const loaded = (text: string) =>
    loadSettings({
      file: { name: 'zoo.cfg', text: `dataDir=/data\nclientPort=2181\n${text}\n` },
      environment: { JVMFLAGS: '-Dzookeeper.ssl.trustStore.password=hidden' },
      flags: [{ flag: '--x', key: 'ssl.keyStore.password', value: 'hidden' }],
      files: { read: () => undefined, resolve: (path) => `/etc/${path}` },
    }).settings!
  const disk = diskWith({ '/etc/zoo.cfg': 0o644 })
  const secrets = 'ssl.keyStore.password=hidden\nsasl.digest.users=ada:hidden'
  const found = await openSecretFiles(loaded(secrets), disk)
  expect(found).toEqual([
    {
      key: 'ssl.keyStore.password, sasl.digest.users',
      path: '/etc/zoo.cfg',
      isConfiguration: true,
      evidence: 'its mode is 644, its group may read it, all users may read it',
      command: 'chmod 600 /etc/zoo.cfg',
    },
  ])
  expect(await openSecretFiles(loaded(secrets), diskWith({ '/etc/zoo.cfg': 0o600 }))).toEqual([])
  expect(await openSecretFiles(loaded('tickTime=1000'), disk)).toEqual([])
  const lines: string[] = []
  const logger = { ...silentLogger, warn: (_: object, line: string) => void lines.push(line) }
  const files = new SecretFiles(loaded(secrets), { disk, clock: new ManualClock(), logger })
  await files.start()
  files.stop()
  expect(lines).toEqual([
    expect.stringMatching(
      /^\/etc\/zoo\.cfg, in which ssl\.keyStore\.password, sasl\.digest\.users is set, holds secrets: its mode is 644/,
    ),
  ])
  expect(lines.join()).not.toContain('hidden')
})

it('nothing is found where files have no modes', async () => {
  expect(await openSecretFiles(settings, new MemoryDisk())).toEqual([])
})

it('each setting that names a file of keys, passwords, secrets or tokens is one of a file with secrets', () => {
  const paths = settingNames.map(rowOf).filter(({ isPath }) => isPath)
  const named = paths.filter(({ key }) =>
    /keystore|password|secret|token|key|credential|users|jaas/i.test(key),
  )
  expect(named.filter(({ isSecretFile }) => !isSecretFile).map(({ key }) => key)).toEqual([])
  expect(paths.filter(({ isSecretFile }) => isSecretFile)).toHaveLength(named.length)
})

it('a server warns of each file once, again when its mode has changed, and no more once it has stopped', async () => {
  const clock = new ManualClock()
  const modes: Record<string, number> = { '/secrets/quorum': 0o644 }
  const lines: string[] = []
  const logger = { ...silentLogger, warn: (_: object, line: string) => void lines.push(line) }
  const files = new SecretFiles(settings, { disk: diskWith(modes), clock, logger })
  await files.start()
  const line = (mode: string, path: string, key: string): string =>
    `${path}, which ${key} names, holds secrets: its mode is ${mode}. Run chmod 600 ${path}`
  const first = line(
    '644, its group may read it, all users may read it',
    '/secrets/quorum',
    'quorumSecretFile',
  )
  expect(lines).toEqual([first])
  const look = async (): Promise<void> => {
    clock.advance(10_000)
    await clock.untilIdle()
  }
  await look()
  expect(lines).toHaveLength(1)
  modes['/secrets/quorum'] = 0o600
  modes['/secrets/tls.pem'] = 0o604
  await look()
  await look()
  expect(lines.slice(1)).toEqual([
    line('604, all users may read it', '/secrets/tls.pem', 'ssl.keyStore.location'),
  ])
  modes['/secrets/quorum'] = 0o644
  await look()
  expect(lines.slice(2)).toEqual([first])
  files.stop()
  modes['/secrets/quorum'] = 0o666
  await look()
  expect(lines).toHaveLength(3)
})

it('a server starts with such a file, and stops looking when it is closed', async () => {
  const modes: Record<string, number> = { '/data/tokens': 0o644 }
  const disk = diskWith(modes)
  disk.putFile('/data/tokens', new Uint8Array(0))
  const server = await TestServer.start({ adminTokensFile: '/data/tokens' }, disk)
  const lines = () => server.logLines.filter(({ stamp }) => stamp.id === 'file.open-secret')
  expect(lines()).toMatchObject([
    {
      level: 'warn',
      sentence: expect.stringMatching(/^\/data\/tokens, which admin\.tokensFile names.*\. Run chmod 600/),
    },
  ])
  await server.stop()
  modes['/data/tokens'] = 0o666
  await server.advance(20_000)
  expect(lines()).toHaveLength(1)
})

import { MemoryDisk } from '@zabra/runtime'
import { expect, it } from 'vitest'
import { TestServer } from './testing/test-server.ts'

it.each([
  [{ adminTokensFile: '/none' }, /^admin\.tokensFile: .*\. Check the path and its permissions\.$/],
  [{ auditEnabled: true, auditFile: '/none' }, /^audit\.file: .*\. Check the path and its permissions\.$/],
  [
    { backupTargets: ['/backups'], backupKeyFile: '/none' },
    /^backup\.encryption\.keyFile: .*\. Check the path and its permissions\.$/,
  ],
  [
    { backupTargets: ['s3://bucket'], backupS3CredentialsFile: '/none' },
    /^backup\.s3\.credentialsFile: .*\. Check the path and its permissions\.$/,
  ],
  [{ sessionSecretFile: '/none' }, /^sessionSecretFile: .*got no file in \/none\. Write at least 16 random/],
])('a start with a file that cannot be used names the setting: %j', async (settings, message) => {
  const disk = new MemoryDisk()
  disk.injectFault = (operation, path) =>
    operation === 'open' && path === '/none' ? { code: 'EACCES' } : undefined
  await expect(TestServer.start(settings, disk)).rejects.toMatchObject({
    name: 'SettingFileError',
    message: expect.stringMatching(message) as string,
  })
})

import type { LoadedSettings } from '@zabra/server/settings'
import { checkSecurity } from './check-security.ts'
import { checkVoters } from './check-voters.ts'
import { finding, type Finding } from './finding.ts'

/** Checks a configuration as a server does at its start, and for what starts and is unwise. */
export function* checkConfiguration(
  file: string,
  { settings, findings }: LoadedSettings,
): Generator<Finding> {
  for (const { severity, where, key, text } of findings) {
    const found = [key, text].filter((part) => part !== undefined && part !== '').join(': ')
    yield severity === 'error'
      ? finding('configuration', where, found, 'Correct the file; a server does not start with it.')
      : finding('configuration-warning', where, found, 'Correct the file, or accept it.')
  }
  if (settings === undefined) return
  const voters = [...(settings.ensemble?.members.values() ?? [])].filter(({ role }) => role === 'participant')
  yield* checkVoters(
    file,
    voters.map(({ addresses }) => addresses[0]?.host),
  )
  if (!settings.forceSync)
    yield finding(
      'no-sync',
      file,
      'forceSync=no: a power cut loses acknowledged writes, and can elect a member that lacks them',
      'Remove forceSync.',
    )
  if (settings.dataDir === settings.dataLogDir)
    yield finding(
      'shared-disk',
      file,
      'snapshots and logs share a folder, so a snapshot delays the sync of writes',
      'Set dataLogDir to a device of its own, where writes must be fast.',
    )
  yield* checkSecurity(file, settings)
}

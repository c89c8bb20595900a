import type { Ports } from '@zabra/runtime'
import type { ServerSettings } from '../../settings/index.ts'
import type { Vault } from './contract.ts'

/**
 * Locks the folders, recovers what is in them and, for a member of an ensemble, judges the epochs. Rejects with a
 * `DamageError`, `RecoveryError`, `FolderLockedError` or `DiskError`; each message says what to do.
 */
export async function openVault(
  _settings: ServerSettings,
  _ports: Ports,
  _options: { readonly member: boolean },
): Promise<Vault> {
  throw new Error('Not there yet')
}

/** The disk of a server and the tree that stands for it, through all its roles. */
export type {
  Epochs,
  LogRange,
  RoleWriter,
  SnapshotSink,
  SnapshotSource,
  Truncated,
  Vault,
} from './contract.ts'
export { openVault } from './vault.ts'

import { formatZxid } from '@zabra/protocol'
import type { Address, Cancel, Ports } from '@zabra/runtime'
import { FourLetterWords } from '../../admin/index.ts'
import {
  Election,
  electionDefaults,
  UNTRUSTED,
  type ElectionWork,
  type PeerState,
} from '../../core/election/index.ts'
import type { ServerId } from '../../core/quorum/index.ts'
import { CommittedWindow } from '../../core/zab/index.ts'
import type { ServerSettings } from '../../settings/index.ts'
import { ElectionDriver } from '../election/driver.ts'
import type { ElectionLinks } from '../election/links.ts'
import type { ServedPort } from '../listeners.ts'
import type { Server, ServerFigures } from '../server.ts'
import { ServerStats } from '../stats.ts'
import { openVault } from '../vault/index.ts'
import { ClientDoor } from './client-door.ts'
import { loadConfigurations } from './configuration-files.ts'
import { LearnerTerm } from './following.ts'
import { LeaderTerm } from './leading.ts'
import type { MemberKit, Over, Term } from './member-kit.ts'
import { electionLinks } from './member-links.ts'
import { MemberSnapshots } from './member-snapshots.ts'
import { Membership } from './membership.ts'
import { ReadOnlyTerm } from './read-only.ts'
import { catchUp } from './window-catch-up.ts'

type Decided = Extract<ElectionWork, { do: 'decide' }>
type Configure = Extract<ElectionWork, { do: 'configure' }>

/** Least time without a leader after which a server that may be read-only is, in milliseconds. */
const READ_ONLY_AFTER_MS = 2000

/**
 * Opens the data directory of a member and joins its ensemble. Rejects as `createServer` does; it does not wait for a leader.
 */
export async function startPeer(settings: ServerSettings, ports: Ports): Promise<Server> {
  const vault = await openVault(settings, ports, { member: true })
  try {
    const known = await loadConfigurations(ports.disk, settings.dataDir, settings.ensemble!, ports.logger)
    const membership = new Membership(settings.serverId, known, { disk: ports.disk, folder: settings.dataDir })
    const peer = new Peer(settings, ports, vault, membership)
    await peer.start()
    return peer
  } catch (error) {
    await vault.close()
    throw error
  }
}

import { mutant, type ServerMutant } from './mutant.ts'

const authority = 'ensemble/feature-authority.ts'
const levelsOfMember = 'ensemble/feature-levels.ts'
const state = 'core/quorum/feature-state.ts'
const ensembles = { servers: 3, with: 'finalize' } as const

/** Defects in how an ensemble finalizes feature levels. */
export const levels: readonly ServerMutant[] = [
  mutant('level-stored-by-some', 'A feature level is final once one member has stored it.', ensembles, [
    [authority, 'members.every(({ stored })', 'members.some(({ stored })'],
  ]),
  mutant(
    'level-goes-back',
    'A member takes the finalized level of its leader, also a lower one.',
    ensembles,
    [[state, 'Math.max(own.finalized, other)', 'other']],
  ),
  mutant(
    'level-counts-early',
    'A feature level counts as stored before it is on disk.',
    { servers: 1, with: 'finalize' },
    [
      [
        'persistence/feature-file.ts',
        'return disk.replaceFile(`${folder}/${FEATURE_FILE}`, new TextEncoder().encode(text))',
        'disk.replaceFile(`${folder}/${FEATURE_FILE}`, new TextEncoder().encode(text)).catch(() => {})\n  return Promise.resolve()',
      ],
    ],
  ),
  mutant('level-above-members', 'A feature level is proposed whatever the members run.', ensembles, [
    [
      authority,
      'if (plan.obstacles.length > 0) return { plan, isFinalized: false, waitsFor: undefined }',
      '',
    ],
  ]),
  mutant(
    'level-of-folder-ignored',
    'A server starts on a folder of a level that its release does not read.',
    ensembles,
    [[levelsOfMember, 'if (level <= release) return', 'if (level >= 0) return']],
  ),
  mutant(
    'level-of-others-ignored',
    'Servers of earlier releases join an ensemble that is finalized above them.',
    { servers: 5, with: 'finalize' },
    [
      [levelsOfMember, '(said !== undefined && said.level >= level)', 'said !== undefined'],
      [
        levelsOfMember,
        'level > this.release ? this.#tooHigh(leader, level)',
        'level < 0 ? this.#tooHigh(leader, level)',
      ],
    ],
  ),
  mutant('level-not-proposed', 'Members do not store the level that their leader proposes.', ensembles, [
    [state, 'proposed: proposed > finalized ? proposed : 0', 'proposed: 0'],
  ]),
]

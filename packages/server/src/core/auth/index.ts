/** Authentication and access control. */
export { AclRules, aclVisibility, maskDigests, MAX_ACL_ENTRIES } from './acl.ts'
export { saslScheme } from './schemes.ts'
export { isDistinguishedName } from './distinguished-name.ts'
export { identitiesOfCertificate, x509Scheme, type X509Rules } from './x509.ts'
export { authenticate, userName, addIdentities } from './authenticate.ts'
export { canonicalIp, ipMatcherOf, ipMatches, isIpExpression, isLoopback, parseIp } from './ip.ts'

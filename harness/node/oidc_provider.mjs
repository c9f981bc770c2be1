// An OpenID Connect provider over https on loopback, for tests. The one argument is a file with its settings:
// folder (where oidc-provider is installed), issuer, port, certificate, key, jwks, clients, audiences, claims, and
// people and redirect_uri (a client at which people sign in, by a form that takes any name and password).
import { readFileSync } from 'node:fs';
import { createServer } from 'node:https';
import { pathToFileURL } from 'node:url';

const given = JSON.parse(readFileSync(process.argv[2], 'utf8'));
const entry = pathToFileURL(`${given.folder}/node_modules/oidc-provider/lib/index.js`).href;
const { Provider } = await import(entry);

const clients = given.clients.map((id) => ({
  client_id: id,
  client_secret: 'secret',
  grant_types: ['client_credentials'],
  redirect_uris: [],
  response_types: [],
}));
if (given.redirect_uri) {
  clients.push({ client_id: given.people, client_secret: 'secret', redirect_uris: [given.redirect_uri] });
}
const provider = new Provider(given.issuer, {
  clients,
  claims: { openid: ['sub', ...Object.keys(given.claims)] },
  conformIdTokenClaims: false,
  findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id, ...given.claims }) }),
  jwks: given.jwks,
  extraTokenClaims: () => given.claims,
  ttl: { ClientCredentials: 600 },
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: Boolean(given.redirect_uri) },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => Object.keys(given.audiences)[0], // for clients that name none
      getResourceServerInfo: (_context, resource) => ({
        scope: '',
        audience: resource,
        accessTokenFormat: 'jwt',
        jwt: { sign: { alg: given.audiences[resource] } },
      }),
    },
  },
});
const files = { cert: readFileSync(given.certificate), key: readFileSync(given.key) };
createServer(files, provider.callback()).listen(given.port, '127.0.0.1');
